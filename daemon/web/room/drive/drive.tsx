/** The page of a room's drive: one directory at a time, and a file's contents as far as they can be shown safely. */

import type { AuditRecord, auditList } from "../../../../shared/api/audit.ts";
import type { DriveEntry, fsList } from "../../../../shared/api/drive.ts";
import { isReading } from "../../../../shared/audit-reads.ts";
import { Empty, Line, Shown } from "../../components/parts.tsx";
import { Who } from "../../components/records.tsx";
import { Table } from "../../components/table.tsx";
import { Ago, Foreign, sizeText } from "../../components/text.tsx";
import { get, part } from "../../data/api.ts";
import { roomPath } from "../../data/paths.ts";
import { useLoaded } from "../../data/resource.ts";
import { place } from "../../shell/router.ts";
import type { TabProps } from "../tab.ts";
import { Preview } from "./preview.tsx";
import { writerOf, writesByPath } from "./writer.ts";

/** Maximum number of listed entries; more would not be readable. */
const MOST = 1000;

const KINDS = { directory: "directory", symlink: "link", other: "special", file: "file" } as const;
const parentOf = (path: string) => path.slice(0, Math.max(1, path.lastIndexOf("/")));

export default function Drive({ room, again }: TabProps) {
  const { room_id: roomId, drive } = room;
  const { query } = place.value;
  const file = query.get("file");
  const path = query.get("path") || (file ? parentOf(file) : "/");
  const isActive = room.state === "active";
  const found = useLoaded(
    `drive ${room.room_uid} ${path}`,
    async (signal) =>
      isActive ? await get<typeof fsList>(`/v1/rooms/${part(roomId)}/drive/list`, { path, limit: MOST }, signal) : null,
    (record) => (record.event.startsWith("drive.") && !isReading(record)) || record.event === "exec.finished",
  );
  const written = useLoaded(
    `writes ${room.room_uid}`,
    async (signal) => {
      if (!isActive) return null;
      const query = { event: "drive.written", limit: MOST };
      const writes = await get<typeof auditList>(`/v1/rooms/${part(roomId)}/audit`, query, signal);
      return { writes, byPath: writesByPath(writes.items) };
    },
    ({ event }) => event === "drive.written",
  );
  const askAgain = () => {
    again();
    found.again();
  };
  const here = roomPath(roomId, "drive");
  const to = (entry: Pick<DriveEntry, "path" | "type">) =>
    entry.type === "directory"
      ? `${here}?path=${part(entry.path)}`
      : `${here}?path=${part(path)}&file=${part(entry.path)}`;
  if (!isActive) {
    return (
      <Empty title="This room was destroyed. Its files cannot be shown.">
        <p>
          The <a href={`/audit?room=${part(roomId)}&event=drive.`}>audit log</a> has the writes made by calls.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <p class="crumbs">
        <Crumbs path={path} here={here} />
        <span class="muted">
          {sizeText(drive.used_bytes)} of {sizeText(drive.limit_bytes)} used{" "}
          <meter min={0} max={drive.limit_bytes} value={drive.used_bytes} aria-label="Used of the drive" /> ·{" "}
          <button type="button" class="link" onClick={askAgain}>
            Refresh
          </button>
        </span>
      </p>
      <Shown of={found} rows={6}>
        {(answer) =>
          !answer || answer.items.length === 0 ? (
            <Empty title="This directory is empty.">
              <p>
                Sandboxes have the drive at <code>/mnt/drive</code>; to upload a file:
              </p>
              <Line words={["drive", "put", "notes.txt", `${roomId}:/notes.txt`]} />
            </Empty>
          ) : (
            <>
              <Table
                classes={{ Size: "num tight" }}
                rows={answer.items.map((entry) => ({
                  key: entry.path,
                  class: entry.path === file ? "marked" : undefined,
                  cells: {
                    Name: (
                      <a class={entry.type === "directory" ? "name" : undefined} data-row href={to(entry)}>
                        <Foreign text={entry.name} most={160} />
                        {entry.type === "directory" ? "/" : ""}
                      </a>
                    ),
                    Size: entry.type === "file" ? sizeText(entry.size_bytes) : "–",
                    Changed: <Ago at={entry.modified_at} />,
                    By: <Writer of={written.data ? writerOf(entry, written.data.byPath, written.data.writes) : null} />,
                    Kind: (
                      <>
                        {KINDS[entry.type]}{" "}
                        {entry.target === undefined ? null : <Foreign text={`to ${entry.target}`} most={100} mono />}
                      </>
                    ),
                  },
                }))}
              />
              {answer.next_cursor === null ? null : (
                <p class="muted">The first {MOST} are shown: `roomd drive ls` shows all.</p>
              )}
            </>
          )
        }
      </Shown>
      {file ? <Preview key={file} roomId={roomId} path={file} /> : null}
    </>
  );
}

/** Links to the record if there is one. */
function Writer({ of }: { of: AuditRecord | "sandbox" | null }) {
  if (of === null) return <span class="muted">–</span>;
  if (of === "sandbox") return <span class="muted">a sandbox</span>;
  return (
    <a href={`/audit?audit_id=${part(of.audit_id)}`}>
      <Who record={of} />
    </a>
  );
}

function Crumbs({ path, here }: { path: string; here: string }) {
  const names = path.split("/").filter(Boolean);
  return (
    <nav class="way" aria-label="Directory">
      <a href={here}>drive</a>
      {names.map((name, n) => (
        <span key={`${n} ${name}`}>
          {" / "}
          <a href={`${here}?path=${part(`/${names.slice(0, n + 1).join("/")}`)}`}>
            <Foreign text={name} most={60} />
          </a>
        </span>
      ))}
    </nav>
  );
}

/** The page of a room's checkpoints: contents and size of each, the rooms made from it, and the command lines that use it. */
import type { AuditRecord, auditList } from "../../../../shared/api/audit.ts";
import type { CheckpointRecord, checkpointList } from "../../../../shared/api/checkpoints.ts";
import { pathOf } from "../../../../shared/places.ts";
import { Empty, Line, Shown } from "../../components/parts.tsx";
import { Table } from "../../components/table.tsx";
import { Clock, countText, Foreign, sizeText, spanText } from "../../components/text.tsx";
import { get, part } from "../../data/api.ts";
import { agentPath, roomPath } from "../../data/paths.ts";
import { useLoaded } from "../../data/resource.ts";
import { place } from "../../shell/router.ts";
import type { TabProps } from "../tab.ts";

/** A room has fewer checkpoints; of forks, the newest are shown. */
const ALL = 1000;
const CHANGES = /^(?:checkpoint\.(?:created|deleted|expired)|room\.forked)$/;
/** Number of agents listed by name; the rest is a count. */
const NAMED = 6;
/** A name has 128 characters. */
const NAME_START = 120;

export default function Checkpoints({ room }: TabProps) {
  const { room_id: roomId } = room;
  const isActive = room.state === "active";
  const found = useLoaded(
    `checkpoints ${room.room_uid} ${isActive}`,
    async (signal) => {
      if (!isActive) return { items: [], forks: new Map<string, string[]>() };
      const path = `/v1/rooms/${part(roomId)}`;
      const forked = { event: "room.forked", outcome: "success", limit: ALL };
      const [{ items }, forkAudit] = await Promise.all([
        get<typeof checkpointList>(`${path}/checkpoints`, { limit: ALL }, signal),
        get<typeof auditList>(`${path}/audit`, forked, signal),
      ]);
      return { items: items.toReversed(), forks: forksOf(forkAudit.items) };
    },
    ({ event }) => CHANGES.test(event),
  );
  const selected = place.value.query.get("checkpoint");
  if (!isActive) return <Empty title="This room has ended, and its checkpoints with it." />;
  return (
    <Shown of={found}>
      {({ items, forks }) => {
        if (items.length === 0) {
          return (
            <Empty title="This room has no checkpoint.">
              <p>A checkpoint is a consistent copy of all sandboxes, the drive, and the messages:</p>
              <Line words={["room", "checkpoint", roomId]} />
            </Empty>
          );
        }
        const chosen = items.find(({ checkpoint_id }) => checkpoint_id === selected) ?? null;
        const tries = 1 + [...forks.values()].flat().length;
        const used = (chosen ?? items[0])?.checkpoint_id ?? "";
        return (
          <>
            {selected === null || chosen !== null ? null : (
              <p class="warning">
                The checkpoint <Foreign text={selected} most={60} mono /> no longer exists.
              </p>
            )}
            <CheckpointTable items={items} forks={forks} chosen={chosen?.checkpoint_id ?? null} />
            <h2>In a shell</h2>
            <p class="muted">
              Fork a new room from <Foreign text={used} mono />, in which every agent continues from that state:
            </p>
            <Line
              words={["room", "fork", roomId, `${roomId.slice(0, NAME_START)}-try-${tries}`, "--checkpoint", used]}
            />
            <p class="muted">Roll this room back to it. Later changes are lost:</p>
            <Line words={["room", "restore", roomId, used]} />
          </>
        );
      }}
    </Shown>
  );
}

interface TableProps {
  items: readonly CheckpointRecord[];
  /** By checkpoint: the rooms that were forked from it. */
  forks: ReadonlyMap<string, readonly string[]>;
  chosen: string | null;
}

function CheckpointTable({ items, forks, chosen }: TableProps) {
  return (
    <Table
      classes={{ Drive: "num tight", Size: "num tight", Paused: "num tight", Taken: "tight", Ends: "tight" }}
      rows={items.map(({ checkpoint_id, room_id, name, snapshots, drive_bytes, size_bytes, paused_ms, ...times }) => ({
        key: checkpoint_id,
        class: checkpoint_id === chosen ? "marked" : undefined,
        "aria-current": checkpoint_id === chosen ? "true" : undefined,
        cells: {
          Checkpoint: (
            <>
              <a data-row href={pathOf({ type: "checkpoint", id: checkpoint_id, room_id, agent_id: null })}>
                <Foreign text={checkpoint_id} mono />
              </a>
              {name === null ? null : (
                <div>
                  <Foreign text={name} most={40} />
                </div>
              )}
            </>
          ),
          Sandboxes: (
            <>
              <Links
                to={snapshots
                  .slice(0, NAMED)
                  .map(({ agent_id }) => [agentPath(room_id, agent_id, "record"), agent_id] as const)}
              />
              {snapshots.length > NAMED ? ` and ${countText(snapshots.length - NAMED)} more` : null}
            </>
          ),
          Forks: <Links to={(forks.get(checkpoint_id) ?? []).map((into) => [roomPath(into), into] as const)} />,
          Drive: sizeText(drive_bytes),
          Size: sizeText(size_bytes),
          Paused: spanText(paused_ms),
          Taken: <Clock at={times.created_at} />,
          Ends: times.expires_at === null ? "with the room" : <Clock at={times.expires_at} />,
        },
      }))}
    />
  );
}

function Links({ to }: { to: readonly (readonly [path: string, name: string])[] }) {
  if (to.length === 0) return <span class="muted">–</span>;
  return (
    <>
      {to.map(([path, name], n) => (
        <span key={`${n} ${path}`}>
          {n > 0 ? ", " : null}
          <a href={path}>
            <Foreign text={name} most={40} />
          </a>
        </span>
      ))}
    </>
  );
}

/** Rooms by checkpoint, from the records of forks, the oldest first. */
function forksOf(records: readonly Pick<AuditRecord, "seq" | "details">[]): Map<string, string[]> {
  const forks = new Map<string, string[]>();
  for (const { details } of records.toSorted((one, other) => one.seq - other.seq)) {
    const { checkpoint_id, into } = details;
    if (typeof checkpoint_id !== "string" || typeof into !== "string") continue;
    forks.set(checkpoint_id, [...(forks.get(checkpoint_id) ?? []), into]);
  }
  return forks;
}

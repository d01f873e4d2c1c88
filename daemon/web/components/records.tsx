/** Display of audit records: time, actor, event, outcome. */

import { useEffect } from "preact/hooks";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { endedAt } from "../data/freshness.ts";
import { roomPath } from "../data/paths.ts";
import { failureOf } from "./failure.ts";
import { State } from "./parts.tsx";
import { nameOf, wantNames } from "./people.ts";
import { Table } from "./table.tsx";
import { Clock, countText, Foreign, spanText } from "./text.tsx";

const MAX_DETAILS = 4;

/** The displayed time of a record: its end, by which records are ordered. */
export const endOf = (record: AuditRecord): string => new Date(endedAt(record)).toISOString();

const toldOf = ({ details }: AuditRecord) =>
  Object.entries(details)
    .filter(
      ([name, value]) => value !== null && value !== false && typeof value !== "object" && !name.endsWith("sha256"),
    )
    .slice(0, MAX_DETAILS);

/** A record's details in a few words. */
export const aboutText = (record: AuditRecord): string =>
  toldOf(record)
    .map(([name, value]) => `${name} ${String(value).slice(0, 80)}`)
    .join(" · ");

/** A record's details in a line. */
function About({ record }: { record: AuditRecord }) {
  return (
    <>
      {toldOf(record).map(([name, value]) => (
        <span key={name} class="detail">
          <span class="muted">{name}</span> <Foreign text={String(value)} most={80} mono />
        </span>
      ))}
    </>
  );
}

/** The failure of the call, or of the command that it ran. Nothing for a success. */
export function Outcome({ record }: { record: AuditRecord }) {
  const failure = failureOf(record);
  return failure === null ? null : <State look="bad">{failure}</State>;
}

/** The agent if there is one, otherwise the key or person. */
export function Who({ record: { agent_id, actor } }: { record: AuditRecord }) {
  const isPerson = agent_id === null && actor.type === "user" && actor.name === "";
  useEffect(() => {
    if (isPerson) wantNames();
  }, [isPerson]);
  const name = isPerson ? (nameOf(actor.id) ?? "a person") : actor.name || actor.type;
  return <Foreign text={agent_id ?? name} most={60} />;
}

interface Records {
  records: readonly AuditRecord[];
  showsRoom?: boolean;
  /** The number of equal records that a row represents. */
  timesOf?: (record: AuditRecord) => number;
}

export function RecordTable({ records, showsRoom = false, timesOf = () => 1 }: Records) {
  return (
    <Table
      classes={{ When: "tight", Who: "who", Room: "who", Outcome: "tight", Took: "num tight" }}
      rows={records.map((record) => ({
        key: record.seq,
        cells: {
          When: (
            <a data-row href={`/audit?audit_id=${encodeURIComponent(record.audit_id)}`}>
              <Clock at={endOf(record)} />
            </a>
          ),
          Who: <Who record={record} />,
          ...(showsRoom
            ? {
                Room:
                  record.room_id === null ? null : (
                    <a href={`${roomPath(record.room_id)}?uid=${record.room_uid ?? ""}`}>
                      <Foreign text={record.room_id} />
                    </a>
                  ),
              }
            : {}),
          What: (
            <>
              <code>{record.event}</code> <About record={record} />
            </>
          ),
          Outcome: (
            <>
              <Outcome record={record} />
              {timesOf(record) > 1 ? <span class="muted"> {countText(timesOf(record))} times</span> : null}
            </>
          ),
          Took: record.duration_ms === null ? "–" : spanText(record.duration_ms),
        },
      }))}
    />
  );
}

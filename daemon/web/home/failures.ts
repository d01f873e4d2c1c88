/** Recent failures on the home page: agents' failures first; equal failures are grouped with their count. Pure. */
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { failureOf } from "../components/failure.ts";

export interface Failures {
  /** The newest of equal ones. */
  record: AuditRecord;
  times: number;
}

/** Errors that a caller provokes by a probe, or by a timeout that it chose. */
const EXPECTED = new Set(["reply_timeout", "barrier_timeout"]);
/** Failures that concern the whole organization, regardless of the key. */
const LIMITS = new Set(["quota_exceeded", "drive_full"]);
/** Details that distinguish failures of one event. */
const TARGETS = ["host", "ip", "port"];

/** Whether a record is a failure that the home page lists. */
export const isListed = (record: AuditRecord): boolean =>
  failureOf(record) !== null && record.status !== 404 && !EXPECTED.has(record.error_code ?? "");

/** Groups of equal failures: agents' failures first, then newest first; at most `most` groups. */
export function groupedFailures(records: readonly AuditRecord[], most: number): Failures[] {
  const groups = new Map<string, Failures>();
  for (const record of records.filter(isListed).sort((one, other) => other.seq - one.seq)) {
    const group = groups.get(keyOf(record)) ?? { record, times: 0 };
    group.times += timesOf(record);
    groups.set(keyOf(record), group);
  }
  // The sort is stable, so equal ranks keep the order of their newest records.
  return [...groups.values()].sort((one, other) => rankOf(one.record) - rankOf(other.record)).slice(0, most);
}

const keyOf = (record: AuditRecord): string => {
  const { agent_id, actor, room_uid, event, details } = record;
  return JSON.stringify([
    agent_id ?? actor.id,
    room_uid,
    event,
    failureOf(record),
    TARGETS.map((name) => details[name]),
  ]);
};

/** One record can count several refused connections. */
const timesOf = ({ details: { count } }: AuditRecord): number => (typeof count === "number" && count > 0 ? count : 1);

const rankOf = ({ agent_id, actor, error_code }: AuditRecord): number =>
  agent_id !== null || actor.type === "sandbox" || LIMITS.has(error_code ?? "") ? 0 : 1;

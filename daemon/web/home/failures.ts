/** Recent failures on the home page: those of agents first, equal ones as one with their number. Pure. */
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { failureOf } from "../components/failure.ts";

export interface Failures {
  /** The newest of equal ones. */
  record: AuditRecord;
  times: number;
}

/** Answers that a caller provokes by a probe, or by the wait that it chose. */
const EXPECTED = new Set(["reply_timeout", "barrier_timeout"]);
/** Failures of an organization's work, whatever key they belong to. */
const LIMITS = new Set(["quota_exceeded", "drive_full"]);
/** Details that distinguish failures of one event. */
const TARGETS = ["host", "ip", "port"];

/** Whether a record is a failure that the home page lists. */
export const isListed = (record: AuditRecord): boolean =>
  failureOf(record) !== null && record.status !== 404 && !EXPECTED.has(record.error_code ?? "");

/** Groups of equal failures: agents' first, then the newest first; at most `most` of them. */
export function groupedFailures(records: readonly AuditRecord[], most: number): Failures[] {
  const groups = new Map<string, Failures>();
  for (const record of records.filter(isListed).sort((one, other) => other.seq - one.seq)) {
    const group = groups.get(keyOf(record)) ?? { record, times: 0 };
    group.times += timesOf(record);
    groups.set(keyOf(record), group);
  }
  // The sort is stable: groups are in the order of their newest records.
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

/** A record of refused connections counts several. */
const timesOf = ({ details: { count } }: AuditRecord): number => (typeof count === "number" && count > 0 ? count : 1);

const rankOf = ({ agent_id, actor, error_code }: AuditRecord): number =>
  agent_id !== null || actor.type === "sandbox" || LIMITS.has(error_code ?? "") ? 0 : 1;

/** Heads of other hosts' chains that records name: the records of a room's move on both hosts name the head of each other's chain. */
import { parseJson } from "../../../core/json.ts";
import type { AuditRow } from "../table.ts";

export interface NamedHead {
  host: string;
  seq: number;
  hash: string;
  /** Time of the record that names it. */
  at: string;
}

/** The newest heads that a verification compares. */
export const MAX_NAMED = 1_000;
/** The field with the other host, by event. */
const OTHER_HOST: Readonly<Record<string, "from" | "to">> = { "room.moved_in": "from", "room.moved_out": "to" };

/** The head that a record names; null: none. */
export function namedHead({ event, details, at }: Pick<AuditRow, "event" | "details" | "at">): NamedHead | null {
  const field = OTHER_HOST[event];
  if (field === undefined) return null;
  const { head, [field]: host } = parseJson(details) as Partial<Record<string, string>> & {
    head?: Pick<NamedHead, "seq" | "hash"> | null;
  };
  return head && host !== undefined ? { host, seq: head.seq, hash: head.hash, at } : null;
}

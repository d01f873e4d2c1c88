/**
 * Places of the records of a chain: closed days are separate databases, later records are in the table audit. A part is looked up again for
 * each step, since records move from the table to a closed day between two steps. Stateless: reader threads use it too.
 *
 *     seq    start      stretch         stretch       closed       head
 *             │ 2026-11-27.db │ 2026-11-28.db │ table audit │
 */
import { join } from "node:path";
import { AUDIT_DAYS } from "../../../core/config/paths.ts";
import { directoryOf, preparedBy, type Queries, rawQuery } from "../../../db/client.ts";
import { closedFile } from "../../../db/closed-files.ts";
import type { ChainKey } from "../chain/chain-key.ts";

/** Records of a chain in one database. */
export interface ChainPart {
  /** Valid for the current step only. */
  queries: Queries;
  /** Seq before its first record. */
  after: number;
  /** The seq of its last record; infinite for the table audit. */
  last: number;
}

/** Criteria by which a part is looked up. */
export interface PartCriteria {
  order: "asc" | "desc";
  /** Exclusive, in that order; undefined: from the beginning. */
  from?: number | undefined;
  /** Closed days without records in this time range are skipped. */
  since?: string | undefined;
  until?: string | undefined;
}

interface Stretch {
  first_seq: number;
  last_seq: number;
  last_hash: string;
  name: string;
  sha256: string;
}

/** Sorts after every moment. */
const END_OF_TIME = "\uffff";
const STRETCHES = `SELECT s.first_seq, s.last_seq, s.last_hash, f.name, f.sha256
  FROM audit_stretches AS s CROSS JOIN audit_files AS f ON f.number = s.file WHERE s.org_key = ?`;
const WITHIN = "AND s.last_at >= ? AND s.first_at <= ? ORDER BY s.last_seq";

const statementsOf = preparedBy((queries: Queries) => ({
  asc: rawQuery<Stretch>(queries, `${STRETCHES} AND s.last_seq > ? ${WITHIN} LIMIT 1`),
  desc: rawQuery<Stretch>(queries, `${STRETCHES} AND s.first_seq < ? ${WITHIN} DESC LIMIT 1`),
  all: rawQuery<Stretch>(queries, `${STRETCHES} ORDER BY s.last_seq`),
  last: rawQuery<Stretch>(queries, `${STRETCHES} ORDER BY s.last_seq DESC LIMIT 1`),
  start: rawQuery<{ seq: number }>(queries, "SELECT seq FROM audit_starts WHERE org_key = ?"),
  at: rawQuery<{ at: string }>(queries, "SELECT at FROM audit WHERE org_key = ? AND seq = ?"),
  days: rawQuery<{ name: string }>(queries, "SELECT name FROM audit_files WHERE removed_at IS NULL ORDER BY number"),
}));

/** The last record up to `seq` that is in no closed day and from before a moment. Binary search: records are nearly ordered by time. */
export function lastBefore(queries: Queries, key: ChainKey, seq: number, moment: string): number {
  const { at } = statementsOf(queries);
  let [before, after] = [closedUpTo(queries, key), seq + 1];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    // Records of the commit in progress are not readable yet, and are from today.
    if ((at([key, middle])[0]?.at ?? moment) < moment) before = middle;
    else after = middle;
  }
  return before;
}

/** A chain's stretch in a closed day. */
interface ClosedStretch {
  /** Path of the closed day's file. */
  path: string;
  /** The seq of its last record. */
  last: number;
  /** All that is recorded of it, as text. */
  row: string;
}

/** In their order. */
export function stretchesOf(queries: Queries, key: ChainKey): ClosedStretch[] {
  const directory = join(directoryOf(queries), AUDIT_DAYS);
  return statementsOf(queries)
    .all([key])
    .map((row) => ({ path: join(directory, row.name), last: row.last_seq, row: Object.values(row).join(" ") }));
}

/** Names of the files of closed days, in their order. */
export const closedDays = (queries: Queries): string[] =>
  statementsOf(queries)
    .days([])
    .map(({ name }) => name);

/** Records of all chains in a closed day; good for the present step only. Throws LostFile. */
export const closedDay = (queries: Queries, name: string): Queries => closedFile(queries, `${AUDIT_DAYS}/${name}`);

/** The seq of the last record that was purged or is in a closed day; 0: no such record. */
export function closedUpTo(queries: Queries, key: ChainKey): number {
  const { last, start } = statementsOf(queries);
  return Math.max(last([key])[0]?.last_seq ?? 0, start([key])[0]?.seq ?? 0);
}

/** The first part that has records after `from`, in the order; null if absent. Throws LostFile. */
export function partOf(queries: Queries, key: ChainKey, place: PartCriteria): ChainPart | null {
  const stretch = stretchAt(queries, key, place);
  if (stretch === TABLE) return { queries, after: closedUpTo(queries, key), last: Number.POSITIVE_INFINITY };
  return stretch && closed(queries, stretch);
}

/** Continuation of a read past a part with a lost file; null if nothing comes after it. */
export function pastPart(queries: Queries, key: ChainKey, place: PartCriteria): number | null {
  const stretch = stretchAt(queries, key, place);
  if (stretch === TABLE || stretch === null) return null;
  if (place.order === "asc") return stretch.last_seq;
  return stretch.first_seq > 1 ? stretch.first_seq : null;
}

/** The part is the table audit. */
const TABLE = "table";

function stretchAt(
  queries: Queries,
  key: ChainKey,
  { order, from, since = "", until = END_OF_TIME }: PartCriteria,
): Stretch | typeof TABLE | null {
  const { asc, desc } = statementsOf(queries);
  if (order === "asc") return asc([key, from ?? 0, since, until])[0] ?? TABLE;
  if (from === undefined || from > closedUpTo(queries, key) + 1) return TABLE;
  return desc([key, from, since, until])[0] ?? null;
}

function closed(queries: Queries, { first_seq, last_seq, name }: Stretch): ChainPart {
  return { queries: closedDay(queries, name), after: first_seq - 1, last: last_seq };
}

/** Bounds as in record filters: `after` is exclusive and `last` inclusive, both in the given order. */
export interface Bounds {
  after: number | undefined;
  last: number | undefined;
}

/** The part of a range that is in `part`; `next` is the continuation of the range, null at its end. */
export function shareOf(
  { after, last }: ChainPart,
  order: "asc" | "desc",
  range: Bounds,
): Bounds & { next: number | null } {
  if (order === "asc") {
    const end = range.last ?? Number.POSITIVE_INFINITY;
    const isEnd = last >= end || last === Number.POSITIVE_INFINITY;
    const from = Math.max(range.after ?? 0, after);
    return { after: from === 0 ? range.after : from, last: finite(Math.min(end, last)), next: isEnd ? null : last };
  }
  const end = range.last ?? 0;
  const from = Math.min(range.after ?? Number.POSITIVE_INFINITY, last + 1);
  const upTo = Math.max(end, after === 0 ? 0 : after + 1);
  return {
    after: finite(from),
    last: upTo === 0 ? undefined : upTo,
    next: after === 0 || after + 1 <= end ? null : after + 1,
  };
}

const finite = (seq: number) => (Number.isFinite(seq) ? seq : undefined);

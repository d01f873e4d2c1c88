/** Queries for audit records: pages, stretches of a chain, and conversion to API records. Has no state: reader threads use it too. */
import { and, asc, desc, eq, gt, gte, inArray, lt, lte, ne, not, or, type SQL, sql } from "drizzle-orm";
import type { AuditRecord, Source } from "../../../shared/api/audit.ts";
import { READING_WORDS } from "../../../shared/audit-reads.ts";
import type { Selection } from "../../../shared/timeline/selection.ts";
import { preparedBy, type Queries, rawQuery } from "../../db/client.ts";
import { isLost } from "../../db/closed-files.ts";
import { type ChainKey, chainKey } from "./chain/chain-key.ts";
import type { Head } from "./chain/hash-chain.ts";
import { partOf, shareOf } from "./days/parts.ts";
import { type AuditRow, audit, auditHeads, auditStarts } from "./table.ts";

/** The last purged record of a chain; null if nothing was purged. */
export function chainStart(queries: Queries, orgKey: ChainKey): Head | null {
  const { seq, hash, org_key } = auditStarts;
  return queries.select({ seq, hash }).from(auditStarts).where(eq(org_key, orgKey)).get() ?? null;
}

/** The last record of a chain according to its table; null for a chain without records. Between transactions. */
export function chainEnd(queries: Queries, orgKey: ChainKey): Head | null {
  const { seq, hash, org_key } = auditHeads;
  return queries.select({ seq, hash }).from(auditHeads).where(eq(org_key, orgKey)).get() ?? null;
}

const hashesOf = preparedBy((queries: Queries) =>
  rawQuery<{ hash: string }>(queries, "SELECT hash FROM audit WHERE org_key = ? AND seq = ?"),
);

/** The hash of one record; undefined if it is absent, or its closed day is lost. */
export function hashAt(queries: Queries, orgKey: ChainKey, seq: number): string | undefined {
  try {
    const part = partOf(queries, orgKey, { order: "asc", from: seq - 1 });
    return part && part.after < seq ? hashesOf(part.queries)([orgKey, seq])[0]?.hash : undefined;
  } catch (error) {
    if (!isLost(error)) throw error;
    return undefined;
  }
}

export interface AuditFilter {
  /** Null: records without an organization. */
  org_id: string | null;
  room_uid?: string | undefined;
  room_id?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  event?: string | undefined;
  agent_id?: string | undefined;
  outcome?: AuditRecord["outcome"] | undefined;
  source?: string | undefined;
  actor_id?: string | undefined;
  request_id?: string | undefined;
  trace_id?: string | undefined;
  audit_id?: string | undefined;
  /** Only records that a timeline shows, by the events of its types. */
  selection?: Selection | undefined;
  /** False: without records of reading calls. */
  reads?: false | undefined;
  order: "asc" | "desc";
  /** Exclusive: seq of the previous page's last record. */
  after?: number | undefined;
  /** Inclusive: the seq of the last record to examine. */
  last?: number | undefined;
  limit: number;
}

/** Sorts after any character of an event's name, so that a prefix is a range. */
const LAST_CHARACTER = "\uffff";

/**
 * Matching records of the first database with records in the range; `next` is the continuation of the range, null at its end. Throws
 * LostFile.
 */
export function listPart(queries: Queries, filter: AuditFilter): { rows: AuditRow[]; next: number | null } {
  const { order, after, last, limit, since, until } = filter;
  const part = partOf(queries, chainKey(filter.org_id), { order, from: after, since, until });
  if (!part) return { rows: [], next: null };
  const { next, ...share } = shareOf(part, order, { after, last });
  const rows = part.queries
    .select()
    .from(audit)
    .where(matching({ ...filter, ...share }))
    .orderBy(order === "asc" ? asc(audit.seq) : desc(audit.seq))
    .limit(limit)
    .all();
  return { rows, next: rows.length < limit ? next : (rows.at(-1)?.seq ?? null) };
}

/** Matching records of all databases: for small results, and for callers that cannot do it in steps. Throws LostFile. */
export function listAudit(queries: Queries, filter: AuditFilter): AuditRow[] {
  const found: AuditRow[] = [];
  for (let after: number | null | undefined = filter.after; after !== null && found.length < filter.limit; ) {
    const { rows, next } = listPart(queries, { ...filter, after, limit: filter.limit - found.length });
    found.push(...rows);
    after = next;
  }
  return found;
}

/** Records of a chain in order after a seq, at most `limit`; empty after its last record. Throws LostFile. */
export function chainRecords(queries: Queries, orgKey: ChainKey, after: number, limit: number): AuditRow[] {
  for (let from = after; ; ) {
    const part = partOf(queries, orgKey, { order: "asc", from });
    if (!part) return [];
    const condition = and(
      eq(audit.org_key, orgKey),
      gt(audit.seq, Math.max(from, part.after)),
      lte(audit.seq, part.last),
    );
    const rows = part.queries.select().from(audit).where(condition).orderBy(asc(audit.seq)).limit(limit).all();
    if (rows.length > 0 || part.queries === queries) return rows;
    from = part.last;
  }
}

/** SQL equivalent of `isReading`. */
const IS_READING = sql`(${or(...READING_WORDS.map((word) => sql`${audit.event} GLOB ${`*[._]${word}`}`))}
  AND (${audit.outcome} = 'success' OR ${audit.source} = 'web'))`;

export function matching(filter: Omit<AuditFilter, "limit">): SQL | undefined {
  const [isAfter, isUpTo] = filter.order === "asc" ? [gt, lte] : [lt, gte];
  // A room's records are looked up by the index of rooms: the organization may have any number of other records between them.
  const ofChain = filter.room_uid === undefined ? sql`${audit.org_key}` : sql`+${audit.org_key}`;
  return and(
    sql`${ofChain} = ${chainKey(filter.org_id)}`,
    filter.room_uid === undefined ? undefined : eq(audit.room_uid, filter.room_uid),
    filter.room_id === undefined ? undefined : eq(audit.room_id, filter.room_id),
    filter.since === undefined ? undefined : gte(audit.at, filter.since),
    filter.until === undefined ? undefined : lte(audit.at, filter.until),
    filter.event === undefined
      ? undefined
      : and(gte(audit.event, filter.event), lt(audit.event, `${filter.event}${LAST_CHARACTER}`)),
    filter.agent_id === undefined ? undefined : eq(audit.agent_id, filter.agent_id),
    filter.outcome === undefined ? undefined : eq(audit.outcome, filter.outcome),
    filter.source === undefined ? undefined : eq(audit.source, filter.source),
    filter.actor_id === undefined ? undefined : eq(audit.actor_id, filter.actor_id),
    filter.request_id === undefined ? undefined : eq(audit.request_id, filter.request_id),
    filter.trace_id === undefined ? undefined : sql`json_extract(${audit.details}, '$.trace_id') = ${filter.trace_id}`,
    filter.audit_id === undefined ? undefined : eq(audit.audit_id, filter.audit_id),
    filter.selection === undefined ? undefined : selected(filter.selection),
    filter.reads === undefined ? undefined : not(IS_READING),
    filter.after === undefined ? undefined : isAfter(audit.seq, filter.after),
    filter.last === undefined ? undefined : isUpTo(audit.seq, filter.last),
  );
}

/** SQL equivalent of `typeOf` of the timeline. */
function selected({ done, waited, denied, waitedDenied }: Selection): SQL | undefined {
  const hasWaited = sql`json_type(${audit.details}, '$.wait_ms') IN ('integer', 'real')`;
  const hasNot = sql`NOT coalesce(${hasWaited}, 0)`;
  const isDenied = eq(audit.outcome, "denied");
  const isNot = ne(audit.outcome, "denied");
  return and(
    ne(audit.source, "web"),
    or(
      and(inArray(audit.event, done), isNot, hasNot),
      and(inArray(audit.event, waited), isNot, hasWaited),
      and(inArray(audit.event, denied), isDenied, hasNot),
      and(inArray(audit.event, waitedDenied), isDenied, hasWaited),
    ),
  );
}

export function toRecord(row: AuditRow): AuditRecord {
  const { org_key: _, actor_type, actor_id, actor_name, details, source, ...rest } = row;
  return {
    ...rest,
    source: source as Source,
    actor: { type: actor_type, id: actor_id, name: actor_name },
    details: JSON.parse(details) as Record<string, unknown>,
  };
}

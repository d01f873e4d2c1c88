/** Appends to the audit, and lookups in all of its chains. */
import { and, desc, eq, inArray, like, or, sql } from "drizzle-orm";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { newId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { faultPoint } from "../../core/fault-points.ts";
import type { Steps } from "../../core/loop/steps.ts";
import { preparedBy, type Queries, rawInserts, type Values } from "../../db/client.ts";
import { isLost } from "../../db/closed-files.ts";
import { locally } from "../../db/dry-run.ts";
import { aggregateAudit } from "./aggregates.ts";
import { chainHead, moveHead } from "./chain/chain-head.ts";
import { type ChainKey, chainKey, orgOfChain } from "./chain/chain-key.ts";
import { GENESIS, HASHED, type Head, hashOfValues, PURGED } from "./chain/hash-chain.ts";
import { DailyCap } from "./daily-cap.ts";
import { closedDay, closedDays, closedUpTo } from "./days/parts.ts";
import type { AuditEntry } from "./entry.ts";
import { stretches } from "./reading/scan.ts";
import { withRoomName } from "./room-name.ts";
import { chainStart, matching, toRecord } from "./rows.ts";
import { audit, auditHeads, auditStretches } from "./table.ts";

/** Appends a record to its organization's chain on this host. Within a transaction. */
export function appendAudit(queries: Queries, entry: AuditEntry): void {
  appendAudits(queries, [entry]);
}

/** Adds records, or counts them if the chain has reached its daily limit. Within a transaction. */
export function appendAudits(queries: Queries, entries: readonly AuditEntry[]): void {
  locally(queries, () => chainAudits(queries, entries, limits.get(queries)));
}

const RETENTION = { type: "system", id: "retention", name: "retention" };

/** Adds the record that `records` were purged and the chain starts after another record. Within a transaction. */
export function appendPurged(queries: Queries, orgKey: ChainKey, { seq, hash }: Head, records: number): void {
  const about = { outcome: "success", at: now(), actor: RETENTION, source: "reconciler" } as const;
  appendAudit(queries, { ...about, event: PURGED, org_id: orgOfChain(orgKey), details: { seq, hash, records } });
}

const limits = new WeakMap<Queries, DailyCap>();

/** Sets the daily limit of records per chain; without a call there is no limit. */
export function limitRecords(queries: Queries, perDay: number): void {
  limits.set(queries, new DailyCap(perDay));
}

/** Appends records to the chains of their organizations. The head of each chain is read and written once. Within a transaction. */
export function chainAudits(queries: Queries, given: readonly AuditEntry[], daily?: DailyCap): void {
  const entries = given.map((entry) => withRoomName(queries, withoutName(entry)));
  const heads = new Map<ChainKey, Head>();
  const rows: Values[] = [];
  for (const entry of entries) {
    const org_key = chainKey(entry.org_id);
    const head = heads.get(org_key) ?? chainHead(queries, org_key);
    if (daily?.isCounted(queries, org_key, head?.seq ?? 0, entry)) {
      aggregateAudit(queries, org_key, entry);
      continue;
    }
    const seq = (head?.seq ?? 0) + 1;
    const row = hashedOf(entry, org_key, seq, head?.hash ?? GENESIS);
    const hash = hashOfValues(row);
    row.push(hash);
    rows.push(row);
    heads.set(org_key, { seq, hash });
    noteGrown(queries, org_key, entry.room_uid);
  }
  insertsOf(queries)(rows);
  for (const _ of rows) faultPoint("audit.recorded");
  for (const [org_key, head] of heads) moveHead(queries, org_key, head);
}

/** Users are recorded by id only: a record is hashed as it is, and outlasts the deletion of a user. */
function withoutName(entry: AuditEntry): AuditEntry {
  return entry.actor.type === "user" && entry.actor.name !== ""
    ? { ...entry, actor: { ...entry.actor, name: "" } }
    : entry;
}

/** A record's columns except its hash, in the order of HASHED. */
function hashedOf(entry: AuditEntry, org_key: ChainKey, seq: number, prev_hash: string): Values {
  return [
    org_key,
    seq,
    newId("evt"),
    entry.event,
    entry.outcome,
    entry.at,
    entry.org_id,
    entry.room_id ?? null,
    entry.room_uid ?? null,
    entry.agent_id ?? null,
    entry.sandbox_id ?? null,
    entry.actor.type,
    entry.actor.id,
    entry.actor.name,
    entry.source,
    entry.request_id ?? null,
    entry.ip ?? null,
    entry.status ?? null,
    entry.error_code ?? null,
    entry.duration_ms ?? null,
    JSON.stringify(entry.details),
    prev_hash,
  ];
}

function noteGrown(queries: Queries, org_key: ChainKey, room_uid: string | undefined): void {
  const chains = grown.get(queries);
  const rooms = chains?.get(org_key) ?? new Set();
  chains?.set(org_key, room_uid === undefined ? rooms : rooms.add(room_uid));
}

/** Keys of chains, each with the rooms that the new records are about. */
export type Grown = Map<ChainKey, Set<string>>;

/** Chains that may have grown since the last `takeGrown`, with the rooms of the new records; absent if it was never called. */
const grown = new WeakMap<Queries, Grown>();

/** Returns the chains with new records since the last call, each with its rooms; the first call starts the collection. */
export function takeGrown(queries: Queries): Grown {
  const chains: Grown = grown.get(queries) ?? new Map();
  grown.set(queries, new Map());
  return chains;
}

/** Prepared once per connection: nearly every request writes a record. */
const insertsOf = preparedBy((queries: Queries) => rawInserts(queries, audit, [...HASHED, "hash"]));

/** Heads of all chains, by key. */
export function chainHeads(queries: Queries): Map<ChainKey, Head> {
  const rows = queries.select().from(auditHeads).all();
  return new Map(rows.map(({ org_key, seq, hash }) => [org_key, { seq, hash }]));
}

/** Number of records ever appended, in all chains. */
export function countRecords(queries: Queries): number {
  const records = sql<number>`coalesce(sum(${auditHeads.seq}), 0)`;
  return queries.select({ records }).from(auditHeads).get()?.records ?? 0;
}

/** Limit on full stretches when scanning a room's newest records: about 20,000 records. */
const MAX_FULL_STRETCHES = 8;
/** Some milliseconds of work, if most stretches have few records. */
const MAX_STRETCHES = 30;

/**
 * Records of these executions of a sandbox that succeeded, oldest first; a step for each stretch of the chain. Records older than the start of
 * all of them are not read.
 */
export function* executionRecords(
  queries: Queries,
  { org_id, room_uid, sandbox_id }: { org_id: string; room_uid: string; sandbox_id: string },
  execIds: readonly string[],
): Steps<(AuditRecord & { exec_id: string })[]> {
  const found: (AuditRecord & { exec_id: string })[] = [];
  const pendingIds = new Set(execIds);
  const exec_id = sql<string>`json_extract(${audit.details}, '$.exec_id')`;
  let [inspected, full] = [0, 0];
  try {
    for (const stretch of stretches(queries, { org_id, room_uid, order: "desc" })) {
      if (pendingIds.size === 0 || full >= MAX_FULL_STRETCHES || inspected++ >= MAX_STRETCHES) break;
      const rows = stretch.queries
        .select()
        .from(audit)
        .where(
          and(
            matching({ org_id, room_uid, order: "desc", after: stretch.after, last: stretch.last }),
            eq(audit.sandbox_id, sandbox_id),
            eq(audit.outcome, "success"),
            inArray(audit.event, ["exec.started", "exec.finished"]),
            inArray(exec_id, [...execIds]),
          ),
        )
        .orderBy(desc(audit.seq))
        .all();
      for (const row of rows) {
        const record = toRecord(row);
        const name = String(record.details.exec_id);
        found.push({ ...record, exec_id: name });
        if (row.event === "exec.started" && record.details.existing !== true) pendingIds.delete(name);
      }
      if (stretch.isFull) full++;
      yield;
    }
  } catch (error) {
    // If a day's file is lost, records of earlier days are unavailable.
    if (!isLost(error)) throw error;
  }
  return found.reverse();
}

/** All records of a user's actions, and of actions on the user, in every chain; it reads all there are, a step for each closed day. */
export function* recordsAbout(queries: Queries, userId: string): Steps<AuditRecord[]> {
  const isAbout = or(eq(audit.actor_id, userId), like(audit.details, `%"${userId}"%`));
  const open = queries.select().from(audit).where(isAbout).all();
  const found = open.filter(({ org_key, seq }) => seq > closedUpTo(queries, org_key));
  // Of the same moment: a day that is closed during the walk has been read as part of the table.
  const days = closedDays(queries);
  yield;
  for (const name of days) {
    const rows = closedDay(queries, name).select().from(audit).where(isAbout).all();
    const starts = new Map(rows.map(({ org_key }) => [org_key, 0]));
    for (const key of starts.keys()) starts.set(key, chainStart(queries, key)?.seq ?? 0);
    found.push(...rows.filter(({ org_key, seq }) => seq > (starts.get(org_key) ?? 0)));
    yield;
  }
  return found.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).map(toRecord);
}

/** The keys of all chains. */
export function auditChains(queries: Queries): ChainKey[] {
  const known = queries.select({ org_key: auditHeads.org_key }).from(auditHeads);
  const found = queries.select({ org_key: audit.org_key }).from(audit);
  const closed = queries.select({ org_key: auditStretches.org_key }).from(auditStretches);
  return known
    .union(found)
    .union(closed)
    .all()
    .map((row) => row.org_key);
}

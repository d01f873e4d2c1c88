/**
 * Owns how many bytes the answers that are kept for a second call may take: the large ones of a key, and all of an organization.
 * Beyond that the oldest go, and it stays known that their calls were carried out.
 */
import { and, asc, desc, eq, sql, sum } from "drizzle-orm";
import type { Queries } from "../db/client.ts";
import { type IdempotentCall, idempotency, KEY, sameCall } from "./idempotency-table.ts";

/** So much of an organization's space is made free at once, that it need not be for every call. */
const SHARE = 1 / 100;
const AT_ONCE = 500;
const GONE = { reply: null, reply_zstd: null, reply_bytes: 0, kept_bytes: 0 };
const oldestFirst = [idempotency.created_at, idempotency.path, idempotency.idempotency_key].map((column) =>
  asc(column),
);
// The words of the indexes.
const isLarge = sql`${idempotency.reply_bytes} > 0`;
const isKept = sql`${idempotency.kept_bytes} > 0`;

export class AnswerSpace {
  readonly #ofKey: number;
  readonly #ofOrg: number;
  /** What each organization's answers take, or took before some were too old. */
  readonly #taken = new Map<string, number>();

  constructor(limits: { largeOfKey: number; ofOrg: number }) {
    this.#ofKey = limits.largeOfKey;
    this.#ofOrg = limits.ofOrg;
  }

  /** Within the transaction that has just kept the answer of the call. */
  make(queries: Queries, { key_id, org_id }: IdempotentCall, reply: { reply_bytes: number; kept_bytes: number }): void {
    if (reply.reply_bytes > 0) dropLarge(queries, key_id, this.#ofKey);
    const taken = this.#taken.get(org_id);
    const now = taken === undefined ? takenBy(queries, org_id) : taken + reply.kept_bytes;
    this.#taken.set(org_id, now <= this.#ofOrg ? now : this.#makeFor(queries, org_id));
  }

  #makeFor(queries: Queries, orgId: string): number {
    const taken = takenBy(queries, orgId);
    return taken <= this.#ofOrg ? taken : taken - dropOldest(queries, orgId, taken - this.#ofOrg * (1 - SHARE));
  }
}

function takenBy(queries: Queries, orgId: string): number {
  const bytes = sum(idempotency.kept_bytes).mapWith(Number);
  const ofOrg = and(eq(idempotency.org_id, orgId), isKept);
  return queries.select({ bytes }).from(idempotency).where(ofOrg).get()?.bytes ?? 0;
}

/** Returns how many bytes that makes free: so many at least, where there are. */
function dropOldest(queries: Queries, orgId: string, bytes: number): number {
  const oldest = queries
    .select({ call: KEY, kept_bytes: idempotency.kept_bytes })
    .from(idempotency)
    .where(and(eq(idempotency.org_id, orgId), isKept))
    .orderBy(...oldestFirst)
    .limit(AT_ONCE);
  let free = 0;
  while (free < bytes) {
    const rows = oldest.all();
    if (rows.length === 0) break;
    for (const { call, kept_bytes } of rows) {
      queries.update(idempotency).set(GONE).where(sameCall(call)).run();
      free += kept_bytes;
      if (free >= bytes) break;
    }
  }
  return free;
}

/** Keeps the newest of a key's large answers, as many as fit. */
function dropLarge(queries: Queries, keyId: string, maxBytes: number): void {
  const newestFirst = queries
    .select({ call: KEY, bytes: idempotency.reply_bytes })
    .from(idempotency)
    .where(and(eq(idempotency.key_id, keyId), isLarge))
    .orderBy(desc(idempotency.created_at), desc(idempotency.path), desc(idempotency.idempotency_key))
    .all();
  let kept = 0;
  for (const { call, bytes } of newestFirst) {
    kept += bytes;
    if (kept > maxBytes) queries.update(idempotency).set(GONE).where(sameCall(call)).run();
  }
}

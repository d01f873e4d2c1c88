/**
 * Storage limits for idempotent responses: bytes of large responses per key, bytes of all responses per organization. Above a limit the
 * oldest responses are removed; their calls stay recorded as carried out. Removal is in small portions, with each stored response and, if
 * that is too little, in separate commits, so that no other work waits for it.
 *
 * Also limits the number of stored calls of an organization. Above it the oldest are removed before their day is over.
 */
import { MAX_IDEMPOTENT_CALLS } from "../../../shared/api/headers.ts";
import { at, wallMs } from "../../core/clock.ts";
import { type Queries, rawQuery, rawStatement, type Values } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { TransactionMap } from "../../db/transaction-map.ts";
import type { IdempotentCall, idempotency, KEY } from "./idempotency-table.ts";

/** Share of the space that is freed in one go, so that not every response has to free some. */
const SHARE = 1 / 100;
/** Most responses, or calls of one caller, removed in one portion. */
const AT_ONCE = 500;
/** Most expired calls removed with each call, which adds one; also most removed because of the number of calls. */
const OLD_AT_ONCE = 10;
/** A call without a response may be in progress for this long; it is removed earlier only if there are twice as many calls as allowed. */
const LONGEST_CALL_MS = 2 * 3600 * 1000;

type Row = typeof idempotency.$inferSelect;
type Key = Pick<Row, keyof typeof KEY>;
type StoredSize = Pick<Row, "key_id" | "org_id" | "reply_bytes" | "kept_bytes">;

/** Bytes of all responses of one owner. */
interface Space {
  owner: "key_id" | "org_id";
  bytes: "reply_bytes" | "kept_bytes";
  most: number;
  /** Sums that were computed so far, by owner. */
  taken: TransactionMap<string, number>;
  sum(values: Values): { bytes: number }[];
  oldest(values: Values): Key[];
}

const COLUMNS = "key_id, method, path, idempotency_key";
const SAME_CALL = "key_id = ? AND method = ? AND path = ? AND idempotency_key = ?";

export class IdempotencyStorageLimit {
  readonly #database: Database;
  readonly #spaces: Space[];
  readonly #statements: ReturnType<typeof prepare>;
  /** Owners with a removal in separate commits in progress. */
  readonly #shrinking = new Set<string>();
  readonly #mostCalls: number;
  /** Call counts of the organizations that were looked up. */
  readonly #calls: TransactionMap<string, number>;
  /** Organization of the last removal of calls over age. */
  #lastOrg = "";

  constructor(database: Database, limits: { largeOfKey: number; ofOrg: number; calls?: number }) {
    this.#database = database;
    this.#mostCalls = limits.calls ?? MAX_IDEMPOTENT_CALLS;
    this.#calls = new TransactionMap(database);
    this.#statements = prepare(database.queries);
    this.#spaces = [
      makeSpace(database, "key_id", "reply_bytes", limits.largeOfKey),
      makeSpace(database, "org_id", "kept_bytes", limits.ofOrg),
    ];
  }

  /** Within a transaction: `write` stores the answer of the call, whether or not the call still has a row. */
  keep(call: IdempotentCall, reply: Pick<StoredSize, "reply_bytes" | "kept_bytes">, write: () => void): void {
    const [before] = this.#statements.find(valuesOf(call));
    write();
    // The call may have expired since.
    if (!before) return;
    this.#change(before, -1);
    const { key_id, org_id } = call;
    const kept = { key_id, org_id, reply_bytes: reply.reply_bytes, kept_bytes: reply.kept_bytes };
    this.#change(kept, 1);
    for (const space of this.#spaces) {
      if (kept[space.bytes] > 0 && this.#shrink(space, kept[space.owner])) void this.#goOn(space, kept[space.owner]);
    }
  }

  /**
   * Within the transaction that claims a call: removes this call if it is older than `oldest`, and some other calls that are older or too
   * many.
   */
  dropOld(call: IdempotentCall, oldest: string): void {
    const { old, find, nextOrg } = this.#statements;
    const { org_id } = call;
    this.#forget(old([...valuesOf(call), oldest]));
    this.#dropOldOf(org_id, oldest);
    // Also removes old calls of organizations that call no more.
    this.#lastOrg = nextOrg([this.#lastOrg])[0]?.org_id ?? "";
    if (this.#lastOrg !== org_id) this.#dropOldOf(this.#lastOrg, oldest);
    const isNew = find(valuesOf(call)).length === 0;
    const count = this.#countOf(org_id) + (isNew ? 1 : 0);
    this.#calls.set(org_id, count);
    if (count > this.#mostCalls) this.#dropMost(org_id, count);
  }

  /** Within a transaction: `write` adds a call with its response, or replaces the row of the same call. */
  put(call: Key & StoredSize, write: () => void): void {
    const { org_id } = call;
    this.#calls.set(org_id, this.#countOf(org_id));
    this.#forget(this.#statements.find(valuesOf(call)));
    write();
    this.#count(call, 1);
    const count = this.#countOf(org_id);
    if (count > this.#mostCalls) this.#dropMost(org_id, count);
  }

  /** Within a transaction: removes a call by the columns of its key. */
  remove(key: Values): void {
    this.#forget(this.#statements.forget(key));
  }

  /** Within a transaction: removes some calls of a caller; true if there may be more. */
  removeSome(keyId: string): boolean {
    const removed = this.#statements.someOf([keyId, AT_ONCE]);
    this.#forget(removed);
    return removed.length === AT_ONCE;
  }

  #dropOldOf(orgId: string, oldest: string): void {
    this.#forget(this.#statements.oldOnes([orgId, oldest, OLD_AT_ONCE]));
  }

  /** Removes the oldest calls above the limit; calls that may be in progress only above twice the limit. */
  #dropMost(orgId: string, count: number): void {
    const { oldestOf, forget } = this.#statements;
    const youngest = at(wallMs() - LONGEST_CALL_MS);
    const mayGo = ({ status, created_at }: Pick<Row, "status" | "created_at">) =>
      status || created_at < youngest || count > 2 * this.#mostCalls;
    for (const call of oldestOf([orgId, Math.min(OLD_AT_ONCE, count - this.#mostCalls)])) {
      if (mayGo(call)) this.#forget(forget(valuesOf(call)));
    }
  }

  #forget(calls: readonly StoredSize[]): void {
    for (const kept of calls) this.#count(kept, -1);
  }

  #count(kept: StoredSize, sign: 1 | -1): void {
    this.#change(kept, sign);
    const count = this.#calls.get(kept.org_id);
    if (count !== undefined) this.#calls.set(kept.org_id, count + sign);
  }

  #countOf(orgId: string): number {
    return this.#calls.get(orgId) ?? this.#statements.count([orgId])[0]?.count ?? 0;
  }

  /** Removes one portion if the limit is exceeded; true if that is not enough. */
  #shrink(space: Space, owner: string): boolean {
    if (this.#taken(space, owner) <= space.most) return false;
    const portion = space.oldest([owner, AT_ONCE]);
    for (const call of portion) {
      const [kept] = this.#statements.find(valuesOf(call));
      this.#statements.drop(valuesOf(call));
      if (kept) this.#change(kept, -1);
      if (this.#taken(space, owner) <= space.most * (1 - SHARE)) return false;
    }
    return portion.length === AT_ONCE && this.#taken(space, owner) > space.most;
  }

  /** Yields to other work between portions. If the commit fails (disk full), the next stored response continues. */
  async #goOn(space: Space, owner: string): Promise<void> {
    if (this.#shrinking.has(owner)) return;
    this.#shrinking.add(owner);
    try {
      while (await this.#database.commit(() => this.#shrink(space, owner)));
    } catch {
    } finally {
      this.#shrinking.delete(owner);
    }
  }

  #taken(space: Space, owner: string): number {
    const known = space.taken.get(owner);
    if (known !== undefined) return known;
    const bytes = space.sum([owner])[0]?.bytes ?? 0;
    space.taken.set(owner, bytes);
    return bytes;
  }

  #change(kept: StoredSize, sign: 1 | -1): void {
    for (const { taken, owner, bytes } of this.#spaces) {
      if (kept[bytes] > 0) grow(taken, kept[owner], sign * kept[bytes]);
    }
  }
}

/** An unknown sum stays unknown, and an owner without responses is not cached: the sum is read when it is needed. */
function grow(taken: TransactionMap<string, number>, owner: string, bytes: number): void {
  const sum = taken.get(owner);
  if (sum === undefined) return;
  if (sum + bytes === 0) taken.delete(owner);
  else taken.set(owner, sum + bytes);
}

function valuesOf({ key_id, method, path, idempotency_key }: Key): Values {
  return [key_id, method, path, idempotency_key];
}

function prepare(queries: Queries) {
  const kept = "key_id, org_id, reply_bytes, kept_bytes";
  const ofOrg = "FROM idempotency WHERE org_id = ?";
  const oldest = `SELECT ${COLUMNS} ${ofOrg} AND created_at < ? ORDER BY created_at LIMIT ?`;
  const nothing = "reply = NULL, reply_zstd = NULL, reply_bytes = 0, kept_bytes = 0";
  return {
    find: rawQuery<StoredSize>(queries, `SELECT ${kept} FROM idempotency WHERE ${SAME_CALL}`),
    someOf: rawQuery<StoredSize>(
      queries,
      `DELETE FROM idempotency WHERE (${COLUMNS}) IN (SELECT ${COLUMNS} FROM idempotency WHERE key_id = ? LIMIT ?) RETURNING ${kept}`,
    ),
    drop: rawStatement(queries, `UPDATE idempotency SET ${nothing} WHERE ${SAME_CALL}`),
    forget: rawQuery<StoredSize>(queries, `DELETE FROM idempotency WHERE ${SAME_CALL} RETURNING ${kept}`),
    old: rawQuery<StoredSize>(
      queries,
      `DELETE FROM idempotency WHERE ${SAME_CALL} AND created_at < ? RETURNING ${kept}`,
    ),
    oldOnes: rawQuery<StoredSize>(
      queries,
      `DELETE FROM idempotency WHERE (${COLUMNS}) IN (${oldest}) RETURNING ${kept}`,
    ),
    oldestOf: rawQuery<Row>(queries, `SELECT ${COLUMNS}, status, created_at ${ofOrg} ORDER BY created_at LIMIT ?`),
    count: rawQuery<{ count: number }>(queries, `SELECT count(*) AS count ${ofOrg}`),
    nextOrg: rawQuery<{ org_id: string }>(queries, "SELECT min(org_id) AS org_id FROM idempotency WHERE org_id > ?"),
  };
}

/** Both statements read only the index with the condition `bytes > 0`: a row is as long as its answer. */
function makeSpace(database: Database, owner: Space["owner"], bytes: Space["bytes"], most: number): Space {
  const { queries } = database;
  const ofOwner = `FROM idempotency WHERE ${owner} = ? AND ${bytes} > 0`;
  return {
    ...{ owner, bytes, most, taken: new TransactionMap<string, number>(database) },
    sum: rawQuery(queries, `SELECT ifnull(sum(${bytes}), 0) AS bytes ${ofOwner}`),
    oldest: rawQuery(queries, `SELECT ${COLUMNS} ${ofOwner} ORDER BY created_at LIMIT ?`),
  };
}

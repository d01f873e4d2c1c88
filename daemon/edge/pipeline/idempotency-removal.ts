/**
 * Storage limits for idempotent responses: bytes of large responses per key, bytes of all responses per organization. Above a limit the
 * oldest responses are removed; their calls stay recorded as carried out. Removal is in small portions, with each stored response and, if
 * that is too little, in separate commits, so that no other work waits for it.
 *
 * Also limits the number of stored calls of an organization. Above it the oldest are removed before their day is over.
 *
 * The sums are rows of `idempotency_use`, which triggers of the table of calls keep.
 */
import { MAX_IDEMPOTENT_CALLS } from "../../../shared/api/headers.ts";
import { at, wallMs } from "../../core/clock.ts";
import { type Queries, rawQuery, rawStatement, type Values } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import type { IdempotentCall, idempotency, idempotencyUse, KEY } from "./idempotency-table.ts";

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

type Sums = Pick<typeof idempotencyUse.$inferSelect, "calls" | "bytes">;

/** Limit for the bytes of all responses of one owner. */
interface Space {
  kind: "org" | "key";
  bytes: "reply_bytes" | "kept_bytes";
  most: number;
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
  /** Organization of the last removal of calls over age. */
  #lastOrg = "";

  constructor(database: Database, limits: { largeOfKey: number; ofOrg: number; calls?: number }) {
    this.#database = database;
    this.#mostCalls = limits.calls ?? MAX_IDEMPOTENT_CALLS;
    this.#statements = prepare(database.queries);
    this.#spaces = [
      makeSpace(database.queries, "key", "reply_bytes", limits.largeOfKey),
      makeSpace(database.queries, "org", "kept_bytes", limits.ofOrg),
    ];
  }

  /** Within a transaction: `write` stores the answer of the call, whether or not the call still has a row. */
  keep(call: IdempotentCall, reply: Pick<Row, Space["bytes"]>, write: () => void): void {
    write();
    for (const space of this.#spaces) {
      const owner = call[`${space.kind}_id` as const];
      if (reply[space.bytes] > 0 && this.#shrink(space, owner)) void this.#goOn(space, owner);
    }
  }

  /**
   * Within the transaction that claims a call: removes this call if it is older than `oldest`, and some other calls that are older or too
   * many.
   */
  dropOld(call: IdempotentCall, oldest: string): void {
    const { old, has, nextOrg } = this.#statements;
    const { org_id } = call;
    old([...valuesOf(call), oldest]);
    this.#dropOldOf(org_id, oldest);
    // Also removes old calls of organizations that call no more.
    this.#lastOrg = nextOrg([this.#lastOrg])[0]?.org_id ?? "";
    if (this.#lastOrg !== org_id) this.#dropOldOf(this.#lastOrg, oldest);
    this.#dropMost(org_id, has(valuesOf(call)).length === 0 ? 1 : 0);
  }

  /** Within a transaction: `write` adds a call with its response, or replaces the row of the same call. */
  put({ org_id }: Pick<Row, "org_id">, write: () => void): void {
    write();
    this.#dropMost(org_id, 0);
  }

  /** Within a transaction: removes a call by the columns of its key. */
  remove(key: Values): void {
    this.#statements.forget(key);
  }

  /** Within a transaction: removes some calls of a caller; true if there may be more. */
  removeSome(keyId: string): boolean {
    return this.#statements.someOf([keyId, AT_ONCE]).length === AT_ONCE;
  }

  #dropOldOf(orgId: string, oldest: string): void {
    this.#statements.oldOnes([orgId, oldest, OLD_AT_ONCE]);
  }

  /** Removes the oldest calls above the limit, less those to be added; calls that may be in progress only above twice the limit. */
  #dropMost(orgId: string, added: number): void {
    const { oldestOf, forget } = this.#statements;
    const count = this.#sumsOf("org", orgId).calls + added;
    if (count <= this.#mostCalls) return;
    const youngest = at(wallMs() - LONGEST_CALL_MS);
    const mayGo = ({ status, created_at }: Pick<Row, "status" | "created_at">) =>
      status || created_at < youngest || count > 2 * this.#mostCalls;
    for (const call of oldestOf([orgId, Math.min(OLD_AT_ONCE, count - this.#mostCalls)])) {
      if (mayGo(call)) forget(valuesOf(call));
    }
  }

  #sumsOf(kind: Space["kind"], owner: string): Sums {
    return this.#statements.sums([kind, owner])[0] ?? { calls: 0, bytes: 0 };
  }

  /** Removes one portion if the limit is exceeded; true if that is not enough. */
  #shrink({ kind, most, oldest }: Space, owner: string): boolean {
    if (this.#sumsOf(kind, owner).bytes <= most) return false;
    const portion = oldest([owner, AT_ONCE]);
    for (const call of portion) {
      this.#statements.drop(valuesOf(call));
      if (this.#sumsOf(kind, owner).bytes <= most * (1 - SHARE)) return false;
    }
    return portion.length === AT_ONCE && this.#sumsOf(kind, owner).bytes > most;
  }

  /** Yields to other work between portions. If the commit fails (disk full), the next stored response continues. */
  async #goOn(space: Space, owner: string): Promise<void> {
    const name = `${space.kind} ${owner}`;
    if (this.#shrinking.has(name)) return;
    this.#shrinking.add(name);
    try {
      while (await this.#database.commit(() => this.#shrink(space, owner)));
    } catch {
    } finally {
      this.#shrinking.delete(name);
    }
  }
}

function valuesOf({ key_id, method, path, idempotency_key }: Key): Values {
  return [key_id, method, path, idempotency_key];
}

function prepare(queries: Queries) {
  const ofOrg = "FROM idempotency WHERE org_id = ?";
  const oldest = `SELECT ${COLUMNS} ${ofOrg} AND created_at < ? ORDER BY created_at LIMIT ?`;
  const nothing = "reply = NULL, reply_zstd = NULL, reply_bytes = 0, kept_bytes = 0";
  return {
    has: rawQuery(queries, `SELECT 1 FROM idempotency WHERE ${SAME_CALL}`),
    sums: rawQuery<Sums>(queries, "SELECT calls, bytes FROM idempotency_use WHERE kind = ? AND subject = ?"),
    someOf: rawQuery(
      queries,
      `DELETE FROM idempotency WHERE (${COLUMNS}) IN (SELECT ${COLUMNS} FROM idempotency WHERE key_id = ? LIMIT ?) RETURNING 1`,
    ),
    drop: rawStatement(queries, `UPDATE idempotency SET ${nothing} WHERE ${SAME_CALL}`),
    forget: rawStatement(queries, `DELETE FROM idempotency WHERE ${SAME_CALL}`),
    old: rawStatement(queries, `DELETE FROM idempotency WHERE ${SAME_CALL} AND created_at < ?`),
    oldOnes: rawStatement(queries, `DELETE FROM idempotency WHERE (${COLUMNS}) IN (${oldest})`),
    oldestOf: rawQuery<Row>(queries, `SELECT ${COLUMNS}, status, created_at ${ofOrg} ORDER BY created_at LIMIT ?`),
    nextOrg: rawQuery<{ org_id: string }>(queries, "SELECT min(org_id) AS org_id FROM idempotency WHERE org_id > ?"),
  };
}

/** Reads only the index with the condition `bytes > 0`: a row is as long as its answer. */
function makeSpace(queries: Queries, kind: Space["kind"], bytes: Space["bytes"], most: number): Space {
  const ofOwner = `FROM idempotency WHERE ${kind}_id = ? AND ${bytes} > 0`;
  return { kind, bytes, most, oldest: rawQuery(queries, `SELECT ${COLUMNS} ${ofOwner} ORDER BY created_at LIMIT ?`) };
}

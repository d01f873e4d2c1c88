/**
 * Owns how many bytes the answers that are kept for a second call may take: the large ones of a key, and all of an organization.
 * Beyond that the oldest go, and it stays known that their calls were carried out. They go a few at a time, with each answer that
 * is kept and where that is too little in commits of their own: however many there are, nobody else waits for them.
 */
import { type Queries, rawQuery, rawStatement, type Values } from "../db/client.ts";
import type { Database } from "../db/transact.ts";
import { TransactionMap } from "../db/transaction-map.ts";
import type { IdempotentCall, idempotency, KEY } from "./idempotency-table.ts";

/** So much of a space is made free, that it need not be for every answer. */
const SHARE = 1 / 100;
/** Most answers that go at once. */
const AT_ONCE = 500;
/** Most of those over age that go with each call, which adds one. */
const OLD_AT_ONCE = 10;

type Row = typeof idempotency.$inferSelect;
type Key = Pick<Row, keyof typeof KEY>;
type Kept = Pick<Row, "key_id" | "org_id" | "reply_bytes" | "kept_bytes">;

/** What answers of one owner take together. */
interface Space {
  owner: "key_id" | "org_id";
  bytes: "reply_bytes" | "kept_bytes";
  most: number;
  /** Of the owners that were asked for. */
  taken: TransactionMap<string, number>;
  sum(values: Values): { bytes: number }[];
  oldest(values: Values): Key[];
}

const COLUMNS = "key_id, method, path, idempotency_key";
const SAME_CALL = "key_id = ? AND method = ? AND path = ? AND idempotency_key = ?";

export class AnswerSpace {
  readonly #database: Database;
  readonly #spaces: Space[];
  readonly #statements: ReturnType<typeof prepare>;
  /** Owners of whose answers more has to go. */
  readonly #shrinking = new Set<string>();

  constructor(database: Database, limits: { largeOfKey: number; ofOrg: number }) {
    this.#database = database;
    this.#statements = prepare(database.queries);
    this.#spaces = [
      makeSpace(database, "key_id", "reply_bytes", limits.largeOfKey),
      makeSpace(database, "org_id", "kept_bytes", limits.ofOrg),
    ];
  }

  /** Within a transaction: `write` keeps the answer of the call, whether or not there was one. */
  keep(call: IdempotentCall, reply: Pick<Kept, "reply_bytes" | "kept_bytes">, write: () => void): void {
    const [before] = this.#statements.find(valuesOf(call));
    write();
    // The call may have become too old meanwhile.
    if (!before) return;
    this.#change(before, -1);
    const { key_id, org_id } = call;
    const kept = { key_id, org_id, reply_bytes: reply.reply_bytes, kept_bytes: reply.kept_bytes };
    this.#change(kept, 1);
    for (const space of this.#spaces) {
      if (kept[space.bytes] > 0 && this.#shrink(space, kept[space.owner])) void this.#goOn(space, kept[space.owner]);
    }
  }

  /** Within a transaction: removes some of the calls from before `oldest`, and this one if it is. */
  dropOld(call: IdempotentCall, oldest: string): void {
    const { oldOnes, old } = this.#statements;
    for (const kept of [...oldOnes([oldest, OLD_AT_ONCE]), ...old([...valuesOf(call), oldest])]) this.#change(kept, -1);
  }

  /** One portion goes, where one has to; true when that is not enough. */
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

  /** Others' work comes between two portions. Where the disk takes no more, the next answer goes on. */
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

  #change(kept: Kept, sign: 1 | -1): void {
    for (const { taken, owner, bytes } of this.#spaces) {
      if (kept[bytes] > 0) grow(taken, kept[owner], sign * kept[bytes]);
    }
  }
}

/** Whose sum is not known stays unknown, and who has nothing is not remembered: it is asked for when it is needed. */
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
  const oldest = `SELECT ${COLUMNS} FROM idempotency WHERE created_at < ? ORDER BY created_at LIMIT ?`;
  const nothing = "reply = NULL, reply_zstd = NULL, reply_bytes = 0, kept_bytes = 0";
  return {
    find: rawQuery<Kept>(queries, `SELECT ${kept} FROM idempotency WHERE ${SAME_CALL}`),
    drop: rawStatement(queries, `UPDATE idempotency SET ${nothing} WHERE ${SAME_CALL}`),
    oldOnes: rawQuery<Kept>(queries, `DELETE FROM idempotency WHERE (${COLUMNS}) IN (${oldest}) RETURNING ${kept}`),
    old: rawQuery<Kept>(queries, `DELETE FROM idempotency WHERE ${SAME_CALL} AND created_at < ? RETURNING ${kept}`),
  };
}

/** Both statements read an index alone, which has the words `bytes > 0`: a row is as long as its answer. */
function makeSpace(database: Database, owner: Space["owner"], bytes: Space["bytes"], most: number): Space {
  const { queries } = database;
  const ofOwner = `FROM idempotency WHERE ${owner} = ? AND ${bytes} > 0`;
  return {
    ...{ owner, bytes, most, taken: new TransactionMap<string, number>(database) },
    sum: rawQuery(queries, `SELECT ifnull(sum(${bytes}), 0) AS bytes ${ofOwner}`),
    oldest: rawQuery(queries, `SELECT ${COLUMNS} ${ofOwner} ORDER BY created_at LIMIT ?`),
  };
}

/**
 * Heads of chains: read and written once for all records of a commit, since nearly every request adds one. If heads are not gathered, as in
 * a process that adds a single record, the head is written with the record.
 */
import { preparedBy, type Queries, rawQuery, rawStatement } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import type { ChainKey } from "./chain-key.ts";
import type { Head } from "./hash-chain.ts";

const statementsOf = preparedBy((queries: Queries) => ({
  read: rawQuery<Head>(queries, "SELECT seq, hash FROM audit_heads WHERE org_key = ?"),
  write: rawStatement(
    queries,
    `INSERT INTO audit_heads (org_key, seq, hash) VALUES (?, ?, ?)
     ON CONFLICT (org_key) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`,
  ),
}));

/** Heads of the commit in progress. A head that changes after they were written is written directly. */
class Gathered {
  readonly #database: Database;
  readonly #heads = new Map<ChainKey, Head>();
  #isWritten = false;

  constructor(database: Database) {
    this.#database = database;
    database.beforeCommit((queries) => this.#write(queries));
    database.onCommit(() => {
      this.#isWritten = false;
    });
  }

  get(key: ChainKey): Head | undefined {
    return this.#heads.get(key);
  }

  /** Returns false if the caller has to write the head itself. */
  set(key: ChainKey, head: Head): boolean {
    if (this.#isWritten) return false;
    const before = this.#heads.get(key);
    this.#heads.set(key, head);
    this.#database.undo(() => {
      if (before) this.#heads.set(key, before);
      else this.#heads.delete(key);
    });
    return true;
  }

  #write(queries: Queries): void {
    for (const [key, { seq, hash }] of this.#heads) statementsOf(queries).write([key, seq, hash]);
    this.#heads.clear();
    this.#isWritten = true;
    this.#database.undo(() => {
      this.#isWritten = false;
    });
  }
}

const gathered = new WeakMap<Queries, Gathered>();

/** Makes the database write the heads of chains once per commit. */
export function gatherHeads(database: Database): void {
  gathered.set(database.queries, new Gathered(database));
}

/** The head of a chain; null if the chain has no record. */
export function chainHead(queries: Queries, key: ChainKey): Head | null {
  return gathered.get(queries)?.get(key) ?? statementsOf(queries).read([key])[0] ?? null;
}

/** Within a transaction. */
export function moveHead(queries: Queries, key: ChainKey, head: Head): void {
  if (gathered.get(queries)?.set(key, head)) return;
  statementsOf(queries).write([key, head.seq, head.hash]);
}

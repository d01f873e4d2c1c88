/**
 * SQLite for simulated daemons. A database of the pool keeps its connection, with prepared statements and parsed schema, after the
 * end of a daemon: the next daemon continues on it, with the log cut to its durable part. Opening took most of the time of a simulation.
 * The databases of the pool are equal files of the current schema, since SQLite never writes the log into them.
 */
import { constants, Database as Native, type Statement } from "bun:sqlite";
import { copyFileSync, existsSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

export { constants };

/** Both copies of the header of the log's index, and the state of checkpoints: without them the next reader reads the log again. */
const INDEX_HEADER = new Uint8Array(136);

/** Databases by their files, and readers of them that are open. */
const databases = new Map<string, Pooled>();
const readers = new Map<string, Set<Native>>();

/** A database, with the connection that outlives daemons. */
export class Pooled {
  readonly file: string;
  readonly #native: Native;
  readonly #statements = new Map<string, Statement>();
  /** Descriptor of the log's index; it exists from the first read on. */
  #index: number | null = null;
  isOpen = false;

  constructor(file: string) {
    this.file = file;
    this.#native = new Native(file, { create: true, strict: true });
    databases.set(file, this);
  }

  get log(): string {
    return `${this.file}-wal`;
  }

  /** Its daemon has ended, and of its log the beginning is left. */
  cut(bytes: number): void {
    this.#end();
    if (existsSync(this.log)) truncateSync(this.log, bytes);
  }

  /** Has the beginning of another one's log. */
  copy(other: Pooled, bytes: number): void {
    this.#end();
    writeFileSync(this.log, bytes > 0 ? readFileSync(other.log).subarray(0, bytes) : "");
  }

  #end(): void {
    this.close();
    for (const reader of readers.get(this.file) ?? []) reader.close();
    if (this.#index === null && !existsSync(`${this.file}-shm`)) return;
    this.#index ??= openSync(`${this.file}-shm`, "r+");
    writeSync(this.#index, INDEX_HEADER, 0, INDEX_HEADER.length, 0);
  }

  /** For a daemon that starts. Its temporary tables are as new ones. */
  open(): void {
    this.isOpen = true;
    // The former one's, which finalizes statements.
    Reflect.deleteProperty(this, "prepare");
    if (!this.#statements.has("INSERT INTO temp.shared_mode VALUES ('closed')")) return;
    this.run("UPDATE temp.shared_mode SET mode = 'closed'");
    this.run("UPDATE temp.shared_count SET n = 0");
    this.run("DELETE FROM temp.shared_changed");
  }

  prepare(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#native.prepare(sql);
    // It outlives the daemon.
    statement.finalize = () => {};
    const kept = /^CREATE TEMP |^INSERT INTO temp\./.test(sql) ? once(statement) : statement;
    this.#statements.set(sql, kept);
    return kept;
  }

  query(sql: string): Statement {
    return this.#statements.get(sql) ?? this.prepare(sql);
  }

  run(sql: string): void {
    this.query(sql).run();
  }

  fileControl(op: number, value: Int32Array): number {
    return this.#native.fileControl(op, value);
  }

  get inTransaction(): boolean {
    return this.#native.inTransaction;
  }

  get filename(): string {
    return this.file;
  }

  close(): void {
    if (this.#native.inTransaction) this.#native.run("ROLLBACK");
    this.isOpen = false;
  }
}

/** A statement that has its effect on the first run. */
function once(statement: Statement): Statement {
  let isDone = false;
  return {
    run: () => {
      if (!isDone) statement.run();
      isDone = true;
    },
    finalize: () => {},
  } as unknown as Statement;
}

/** A connection of its own, for a reader, or for an operator's command beside a daemon. It is closed with the daemon. */
function beside(file: string, options: ConstructorParameters<typeof Native>[1]): Native {
  const native = new Native(file, options);
  const open = readers.get(file) ?? new Set();
  readers.set(file, open.add(native));
  const close = native.close.bind(native);
  native.close = () => {
    if (!open.delete(native)) return;
    if (native.inTransaction) native.run("ROLLBACK");
    close();
  };
  return native;
}

function opened(file: string, options: ConstructorParameters<typeof Native>[1]): Native | Pooled {
  const pooled = databases.get(file);
  if (!pooled) return new Native(file, options);
  if (pooled.isOpen || (typeof options === "object" && options.readonly === true)) return beside(file, options);
  pooled.open();
  return pooled;
}

/** In place of the runtime's: called with `new`, it returns a connection of the pool. */
export const Database = function construct(...given: Parameters<typeof opened>) {
  return opened(...given);
} as unknown as typeof Native;

/** Databases of simulated hosts, in a directory in memory. */
export class Pool {
  readonly #directory: string;
  readonly #schema: string;
  readonly #all: { pooled: Pooled; isTaken: boolean }[] = [];

  /** `schema` is the file of an empty database. */
  constructor(directory: string, schema: string) {
    this.#directory = directory;
    this.#schema = schema;
  }

  /** An empty one; of the free ones the first, as the same seed has the same. */
  take(): Pooled {
    let free = this.#all.find(({ isTaken }) => !isTaken);
    if (!free) {
      const file = join(this.#directory, `database-${this.#all.length}.db`);
      copyFileSync(this.#schema, file);
      free = { pooled: new Pooled(file), isTaken: true };
      this.#all.push(free);
    }
    free.isTaken = true;
    return free.pooled;
  }

  give(pooled: Pooled): void {
    pooled.cut(0);
    for (const each of this.#all) if (each.pooled === pooled) each.isTaken = false;
  }
}

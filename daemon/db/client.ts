/** The database connection: the only import of bun:sqlite. */
import { constants, Database } from "bun:sqlite";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { type Column, getTableColumns, getTableName } from "drizzle-orm";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { onceATurn } from "../core/concurrency/next-turn.ts";
import { unlessFull } from "../core/disk-failure.ts";
import type { Steps } from "../core/loop/steps.ts";

export type Queries = BunSQLiteDatabase;

export interface Connection {
  /** Path of the database. */
  file: string;
  queries: Queries;
  /** Runs a statement without results: pragmas, migrations. */
  execute(sql: string): void;
  /** Runs a repeated statement without results; prepared once. */
  step(sql: string): void;
  isInTransaction(): boolean;
  /** The single value of a pragma. */
  pragma(name: string): unknown;
  /** Number of pages in the log, and number of those written into the file; 0 after close. */
  log(): { pages: number; written: number };
  close(): void;
}

const writesOf = new WeakMap<Queries, () => number>();
/** Writes of this process that bypass the owner of the table. */
const writesBeside = new WeakMap<Queries, number>();

/** Differs from an earlier turn's value if the database was written to by other code than the owner of the table. */
export function othersWrites(queries: Queries): number {
  return (writesOf.get(queries)?.() ?? 0) + (writesBeside.get(queries) ?? 0);
}

/** Rows are about to change, or have, past the owner of their table: invalidates all caches of them. */
export function noteOthersWrites(queries: Queries): void {
  writesBeside.set(queries, (writesBeside.get(queries) ?? 0) + 1);
}

/** Memoizes `prepare` per connection: for statements that run repeatedly. */
export function preparedBy<Statements>(prepare: (queries: Queries) => Statements): (queries: Queries) => Statements {
  const prepared = new WeakMap<Queries, Statements>();
  return (queries) => {
    const known = prepared.get(queries) ?? prepare(queries);
    prepared.set(queries, known);
    return known;
  };
}

const clients = new WeakMap<Queries, Database>();

export type Values = (string | number | null)[];

/**
 * Returns a function that runs a statement with raw values, in the order of its placeholders: for the few statements of nearly every
 * request, or that run for many rows in one turn, for which the query builder takes longer than SQLite.
 */
export function rawStatement(queries: Queries, sql: string): (values: Values) => void {
  const statement = clientOf(queries).query<unknown, Values>(sql);
  return (values) => void statement.run(...values);
}

/** Returns a function that inserts a row into a table, with the same effect as the query builder's. */
export function rawInsert<Table extends SQLiteTable>(
  queries: Queries,
  table: Table,
): (row: Table["$inferSelect"]) => void {
  const columns = Object.entries(getTableColumns(table)).map(([key, column]) => ({ key, column }));
  const names = columns.map(({ column: { name } }) => name);
  const insert = rawStatement(queries, insertOf(table, names, 1));
  return (row: Record<string, unknown>) => insert(columns.map(({ key, column }) => asStored(column, row[key] ?? null)));
}

/** Rows per INSERT statement: fewer cost more per row, more gain little. */
const ROWS_TOGETHER = 16;

/** Returns a function that inserts rows into a table, each by its values as they are stored, in the order of `columns`. */
export function rawInserts(
  queries: Queries,
  table: SQLiteTable,
  columns: readonly string[],
): (rows: readonly Values[]) => void {
  const one = rawStatement(queries, insertOf(table, columns, 1));
  const together = rawStatement(queries, insertOf(table, columns, ROWS_TOGETHER));
  return (rows) => {
    const remainderStart = rows.length - (rows.length % ROWS_TOGETHER);
    for (let at = 0; at < remainderStart; at += ROWS_TOGETHER) together(rows.slice(at, at + ROWS_TOGETHER).flat());
    for (const row of rows.slice(remainderStart)) one(row);
  };
}

function insertOf(table: SQLiteTable, columns: readonly string[], rows: number): string {
  const places = `(${columns.map(() => "?").join(", ")})`;
  return `INSERT INTO ${getTableName(table)} (${columns.join(", ")}) VALUES ${Array(rows).fill(places).join(", ")}`;
}

const asStored = (column: Column, value: unknown) =>
  (value === null ? null : column.mapToDriverValue(value)) as Values[number];

/** Like `rawStatement`, for a statement that returns rows. */
export function rawQuery<Row>(queries: Queries, sql: string): (values: Values) => Row[] {
  const statement = clientOf(queries).query<Row, Values>(sql);
  return (values) => statement.all(...values);
}

/** The same for columns that are not known in advance: a row is its values, in the order of the statement. */
export function rawValues(queries: Queries, sql: string): (values: Values) => Values[] {
  const statement = clientOf(queries).query<unknown, Values>(sql);
  return (values) => statement.values(...values) as Values[];
}

function clientOf(queries: Queries): Database {
  const client = clients.get(queries);
  if (!client) throw new Error("the connection is not one of ours");
  return client;
}

interface LogState {
  log: number;
  checkpointed: number;
}
const LOG_STATE = "PRAGMA wal_checkpoint(NOOP)";

function logOf(state: { get(): LogState | null }): ReturnType<Connection["log"]> {
  const found = state.get();
  return { pages: found?.log ?? 0, written: found?.checkpointed ?? 0 };
}

/** Connections of commands: another process may write between two of their statements. */
const besides = new WeakSet<Queries>();

/** Runs `work`, which must not await: all that it reads is of one moment, also if another process has the database open for writing. */
export function atOneMoment<T>(queries: Queries, work: () => T): T {
  const client = clientOf(queries);
  if (!besides.has(queries) || client.inTransaction) return work();
  client.query("BEGIN").run();
  try {
    return work();
  } finally {
    client.query("COMMIT").run();
  }
}

/** Runs each step in this way. */
export function* stepsAtOneMoment<Result>(queries: Queries, steps: Steps<Result>): Steps<Result> {
  for (;;) {
    const { done, value } = atOneMoment(queries, () => steps.next());
    if (done) return value;
    yield;
  }
}

/** Size to which a log that a large transaction made longer is reduced when it restarts. */
export const LOG_BYTES = 32 * 1024 ** 2;

/**
 * Opens the database file, or one in memory for `:memory:`. Commits survive a power cut. SQLite never writes the log into the file at a
 * commit, since it ignores a failure there. If `alone`, `close` does, and throws if the disk fails: then the log is the only copy, and the
 * process must end without closing. Concurrently with a daemon the daemon does it, and the log stays.
 */
export function openConnection(file: string, { alone = true } = {}): Connection {
  const database = new Database(file, { create: true, strict: true });
  // First: the following statements wait for another process's write too.
  database.run("PRAGMA busy_timeout = 5000");
  // So that the file can shrink (shrink.ts). Setting it again would be a write.
  const { auto_vacuum } = database.query("PRAGMA auto_vacuum").get() as { auto_vacuum: number };
  if (auto_vacuum === 0) database.run("PRAGMA auto_vacuum = INCREMENTAL");
  for (const pragma of [
    "journal_mode = WAL",
    // When a daemon also has the database open, the log must not be truncated by the last connection to close.
    `journal_size_limit = ${alone ? LOG_BYTES : -1}`,
    "synchronous = FULL",
    "foreign_keys = ON",
    // Otherwise the rollback data of a savepoint are written to a file, page by page, for every write of a commit.
    "temp_store = MEMORY",
    "wal_autocheckpoint = 0",
  ]) {
    database.run(`PRAGMA ${pragma}`);
  }
  const endStatements = alone ? () => {} : statementsOf(database);
  if (!alone) database.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, new Int32Array([1, 0]));
  const queries = drizzle(database);
  const log = database.query<LogState, []>(LOG_STATE);
  const version = database.query("PRAGMA data_version");
  clients.set(queries, database);
  if (!alone) besides.add(queries);
  writesOf.set(
    queries,
    onceATurn(() => Number(version.values()[0]?.[0] ?? 0)),
  );
  let isOpen = true;
  return {
    file,
    queries,
    execute: (sql) => {
      database.run(sql);
    },
    step: (sql) => {
      database.query(sql).run();
    },
    isInTransaction: () => database.inTransaction,
    pragma: (name) => Object.values(database.query(`PRAGMA ${name}`).get() as Record<string, unknown>)[0],
    log: () => (isOpen ? logOf(log) : { pages: 0, written: 0 }),
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      log.finalize();
      endStatements();
      // On a full disk the log remains; the next start reads it.
      if (alone) unlessFull(() => void database.run("PRAGMA wal_checkpoint(TRUNCATE)"), file);
      database.close();
    },
  };
}

/**
 * Tracks the statements of a short-lived connection; the returned function finalizes those prepared since. If any remained, `close` would
 * leave the file open, and the runtime would write the log into it at the end of the process, with all writers locked out.
 */
function statementsOf(database: Database): () => void {
  const statements: { finalize(): void }[] = [];
  const prepare = database.prepare.bind(database);
  database.prepare = ((...given: Parameters<typeof prepare>) => {
    const statement = prepare(...given);
    statements.push(statement);
    return statement;
  }) as typeof database.prepare;
  return () => {
    for (const statement of statements) statement.finalize();
  };
}

/**
 * Runs `work` on the only connection to the database, which reads the whole log again, including frames that another process has counted as
 * written into the file. Throws SQLITE_BUSY if another process has the database open for longer than `busyMs`.
 */
export function withExclusive(file: string, busyMs: number, work: (connection: ExclusiveConnection) => void): void {
  const database = new Database(file, { create: false, readwrite: true });
  database.run(`PRAGMA busy_timeout = ${busyMs}`);
  // Before the first read: then the index of the log is in memory, and not the file that others have written.
  database.run("PRAGMA locking_mode = EXCLUSIVE");
  database.run("PRAGMA synchronous = FULL");
  database.run("PRAGMA wal_autocheckpoint = 0");
  database.run("PRAGMA journal_size_limit = -1");
  const keepsLog = (keeps: boolean) =>
    database.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, new Int32Array([keeps ? 1 : 0, 0]));
  keepsLog(true);
  try {
    database.query("SELECT count(*) FROM sqlite_schema").get();
    // SQLite takes the exclusive lock at the first write.
    database.run("BEGIN IMMEDIATE");
    database.run("ROLLBACK");
  } catch (error) {
    database.close();
    throw error;
  }
  work({ execute: (sql) => void database.run(sql), log: () => logOf(database.query<LogState, []>(LOG_STATE)) });
  // If `work` throws, the connection stays open, and the log is kept at the end of the process: another checkpoint could hide that the disk
  // has failed.
  keepsLog(false);
  database.close();
}

export type ExclusiveConnection = Pick<Connection, "execute" | "log">;

/** SQLite's quick check of a file that no other process writes: `ok`, or a line of text. Does not change the file. */
export function quickCheck(file: string): string {
  const database = new Database(file, { readonly: true });
  try {
    const [found] = database.query("PRAGMA quick_check(1)").values()[0] ?? [];
    return String(found);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    database.close();
  }
}

/** A read-only connection, in addition to one of this process that writes. */
export interface Reading {
  queries: Queries;
  /** Runs `work`, which must not await, in one transaction: all reads see the same snapshot. */
  within<T>(work: () => T): T;
  /** Starts a snapshot that all later reads see. */
  hold(): void;
  close(): void;
}

/** A database file that never changes, opened without log and locks. */
export interface Unchanging {
  queries: Queries;
  close(): void;
}

/** Page cache of an immutable file in KiB; several such files may be open. */
const UNCHANGING_CACHE_KIB = 512;

/** Schema name of the source database while an immutable file is created. */
export const COPIED_FROM = "service";

/** Makes such a file with rows of another database. It is not synced, and a process that ends during it leaves a partial file. */
export function createUnchanging(file: string, from: string): Unchanging & Pick<Connection, "execute"> {
  const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_CREATE, SQLITE_OPEN_URI } = constants;
  const database = new Database(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI);
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF", `busy_timeout = ${READER_BUSY_MS}`])
    database.run(`PRAGMA ${pragma}`);
  database.run(`ATTACH '${pathToFileURL(from).href.replaceAll("'", "''")}?mode=ro' AS ${COPIED_FROM}`);
  const queries = drizzle(database);
  clients.set(queries, database);
  return { queries, execute: (sql) => void database.run(sql), close: () => database.close() };
}

/** Opens an immutable file. Throws if the file is missing, or is not a database. */
export function openUnchanging(file: string): Unchanging {
  const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants;
  const database = new Database(`${pathToFileURL(file)}?immutable=1`, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  const endStatements = statementsOf(database);
  try {
    database.run(`PRAGMA cache_size = -${UNCHANGING_CACHE_KIB}`);
    database.query("SELECT count(*) FROM sqlite_schema").get();
  } catch (error) {
    database.close();
    throw error;
  }
  const queries = drizzle(database);
  clients.set(queries, database);
  return {
    queries,
    close: () => {
      endStatements();
      database.close();
    },
  };
}

/** Directory of the connection's database file. */
export const directoryOf = (queries: Queries): string => dirname(clientOf(queries).filename);

/** Timeout for a lock that readers and writers take only while a log is created or recovered. */
const READER_BUSY_MS = 1_000;

/** Opens a read-only connection to a migrated database that is already open elsewhere. Throws if its schema cannot be read. */
export function openReading(file: string): Reading {
  const database = new Database(file, { readonly: true, strict: true });
  database.run(`PRAGMA busy_timeout = ${READER_BUSY_MS}`);
  database.run("PRAGMA query_only = ON");
  const [tables] = database.query("SELECT count(*) FROM sqlite_schema").values()[0] ?? [];
  if (!tables) throw new Error("the database has no tables");
  const queries = drizzle(database);
  clients.set(queries, database);
  return {
    queries,
    within: (work) => {
      database.query("BEGIN").run();
      try {
        return work();
      } finally {
        database.query("COMMIT").run();
      }
    },
    hold: () => {
      database.query("BEGIN").run();
      // The first read determines the snapshot.
      database.query("SELECT 1 FROM sqlite_schema").get();
    },
    close: () => {
      if (database.inTransaction) database.query("COMMIT").run();
      database.close();
    },
  };
}

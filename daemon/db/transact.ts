/**
 * Owns transactions. Writes of one turn of the event loop share one commit, so that a flood of requests pays
 * for one fsync together; each write still succeeds or fails alone, by its savepoint.
 */
import { faultPoint } from "../core/fault-points.ts";
import { errnoOf, ServiceError } from "../core/service-error.ts";
import type { Connection, Queries } from "./client.ts";

interface Write {
  work(queries: Queries): unknown;
  vital: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** What is gathered while the writes of a commit run, and written once for all of them before it. */
export interface Gathered {
  /** How much there is, to go back to. */
  mark(): number;
  /** Forgets what came after: the write that it came from is not kept. */
  backTo(mark: number): void;
  /** Writes all of it, and forgets it. */
  write(queries: Queries): void;
}

export interface Database {
  /** For reads: sees what is committed, never the middle of a write. */
  queries: Queries;
  /**
   * Runs `work`, which must not await, and resolves once what it wrote is on disk. On a full disk it may run twice. What is
   * vital is written by all of the disk's reserve: changes of state, and the records of what frees space.
   */
  commit<T>(work: (queries: Queries) => T, vital?: boolean): Promise<T>;
  /** The same for what nobody waits for, and is not vital: before what is committed next, or after so long. */
  commitWithin<T>(ms: number, work: (queries: Queries) => T): Promise<T>;
  /** Calls `listener` after each commit, before whoever made it goes on. */
  onCommit(listener: () => void): void;
  /** Takes part in every commit from now on. */
  gather(gathered: Gathered): void;
  close(): Promise<void>;
}

/** `onFull` may make some space when the disk is full: where it could, the writes are tried again. */
export function makeDatabase(connection: Connection, onFull: (vital: boolean) => boolean = () => false): Database {
  let waiting: Write[] = [];
  /** What is committed before that. */
  let early: Write[] = [];
  let timer: Timer | null = null;
  const listeners: (() => void)[] = [];
  const gathering: Gathered[] = [];
  let scheduled: Promise<void> | null = null;

  const flush = () => {
    const batch = [...early, ...waiting];
    [early, waiting] = [[], []];
    scheduled = null;
    clearTimeout(timer ?? undefined);
    timer = null;
    for (;;) {
      const outcomes: (() => void)[] = [];
      for (const gathered of gathering) gathered.backTo(0);
      try {
        faultPoint("commit.before");
        connection.step("BEGIN IMMEDIATE");
        for (const write of batch) outcomes.push(attempt(connection, gathering, write));
        for (const gathered of gathering) gathered.write(connection.queries);
        faultPoint("commit.written");
        connection.step("COMMIT");
        faultPoint("commit.after");
      } catch (error) {
        try {
          connection.execute("ROLLBACK");
        } catch {
          // SQLite has rolled back by itself, as it does on a full disk.
        }
        if (isDiskFull(error) && onFull(batch.some(({ vital }) => vital))) continue;
        for (const write of batch) write.reject(asServiceError(error));
        return;
      }
      for (const listener of listeners) listener();
      for (const settle of outcomes) settle();
      return;
    }
  };

  const schedule = () => {
    scheduled ??= new Promise((done) =>
      setImmediate(() => {
        flush();
        done();
      }),
    );
  };
  const queued = <T>(queue: Write[], work: (queries: Queries) => T, vital: boolean) =>
    new Promise<T>((resolve, reject) => {
      queue.push({ work, vital, resolve: resolve as (value: unknown) => void, reject });
    });

  return {
    queries: connection.queries,
    commit: (work, vital = true) => {
      schedule();
      return queued(waiting, work, vital);
    },
    commitWithin: (ms, work) => {
      timer ??= setTimeout(schedule, ms);
      return queued(early, work, false);
    },
    onCommit: (listener) => void listeners.push(listener),
    gather: (gathered) => void gathering.push(gathered),
    close: async () => {
      if (early.length > 0) schedule();
      while (scheduled) await scheduled;
      connection.close();
    },
  };
}

function attempt(connection: Connection, gathering: readonly Gathered[], write: Write): () => void {
  const marks = gathering.map((gathered) => gathered.mark());
  connection.step("SAVEPOINT one");
  try {
    const value = write.work(connection.queries);
    connection.step("RELEASE one");
    return () => write.resolve(value);
  } catch (error) {
    // A full disk ends the whole transaction, savepoints and all: then no write of the batch is kept.
    if (isDiskFull(error)) throw error;
    for (const [index, gathered] of gathering.entries()) gathered.backTo(marks[index] ?? 0);
    connection.step("ROLLBACK TO one");
    connection.step("RELEASE one");
    return () => write.reject(error);
  }
}

function asServiceError(error: unknown): unknown {
  return isDiskFull(error) ? new ServiceError("disk_full", { cause: error }) : error;
}

/** The second: no block for the index of the log, which a connection needs first. */
const FULL = new Set(["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"]);

function isDiskFull(error: unknown): boolean {
  return causesOf(error).some((cause) => FULL.has(errnoOf(cause) ?? ""));
}

/** Whether an insert failed because of a unique index on this column (`table.column`). */
export function violatesUnique(error: unknown, column: string): boolean {
  return causesOf(error).some(
    ({ message }) => message.includes("UNIQUE constraint failed") && message.includes(column),
  );
}

/** The error and what caused it: the query builder wraps what SQLite says. */
function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}

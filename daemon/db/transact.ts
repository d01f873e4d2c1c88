/**
 * Transactions. Writes of one turn of the event loop share one commit, and those of the next turns while each brings more, so that a flood
 * of requests pays for one fsync together; each write still succeeds or fails alone, by its savepoint. Writes that arrive during a flush
 * are part of the next commit, and so are writes that exceed the time of one: owners of the event loop's time take turns.
 *
 * A write may run twice, and may be rolled back after it ran. So it registers a step with `undo` for every change in memory:
 *
 *   rolled back alone        its own steps run, the last first
 *   the whole rolled back    all steps of the commit run; then the writes may run again
 *   committed                the steps are discarded
 */
import { backoffMs } from "../../shared/backoff.ts";
import { monotonicMs, sleep, startTimer, stopTimer } from "../core/clock.ts";
import { FairQueue } from "../core/concurrency/fair-queue.ts";
import { nextTurn } from "../core/concurrency/next-turn.ts";
import { DiskFailure, isDiskFailure, isDiskFull, isOverQuota } from "../core/disk-failure.ts";
import { faultPoint } from "../core/fault-points.ts";
import { loopTime, type OwnerName, ownerOf } from "../core/loop/index.ts";
import { causesOf, describeError, errnoOf, ServiceError } from "../core/service-error.ts";
import { type Checkpoints, checkpointsWithin } from "./checkpoints.ts";
import { type Connection, noteOthersWrites, openReading, type Queries } from "./client.ts";
import { type Rehearsed, tried } from "./dry-run.ts";
import type { LogSync } from "./log-sync.ts";

/** Maximum time for which a commit waits for further writes, while each turn of the event loop adds more. */
const GATHER_MS = 2;
/** Time limit for the writes of one commit, which the last may exceed. A commit blocks the event loop. */
const WRITE_MS = 4;
/** Time in which the callers of a commit's writes continue within one turn. */
const SETTLE_MS = 4;
/** Time to wait for another process that writes, such as an operator command. */
const BUSY_MS = 5_000;
const BUSY_PAUSE_MS = { first: 1, most: 20 } as const;

interface Write {
  owner: OwnerName;
  work(queries: Queries): unknown;
  vital: boolean;
  isEarly: boolean;
  about: About;
  /** Writes that run directly after this one, in the same commit. */
  followers: readonly Write[];
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

const NO_FOLLOWERS: readonly Write[] = [];
/** The operator's calls are of an organization without a name. */
const NO_ORGANIZATION = ownerOf("");

/** Owner of the data that a write changes; `host`: any. `reads`: it only adds audit records of read-only calls. */
export type About = OwnerName | "reads";

export interface Database {
  /** For reads: sees committed data, never the middle of a write. */
  queries: Queries;
  /**
   * Runs `work`, which must not await, and resolves after its writes are on disk. On a full disk it may run twice. Vital writes may use the
   * disk's whole reserve: changes of state, and the records of work that frees space. Readers of other organizations than `about` do not
   * wait for its flush; default: `host`.
   */
  commit<T>(work: (queries: Queries) => T, vital?: boolean, about?: About): Promise<T>;
  /**
   * Like `commit`, for a write that no caller waits for and that is not vital: runs in the next commit, or after `ms`; with 0 ms it
   * triggers the next commit.
   */
  commitWithin<T>(ms: number, work: (queries: Queries) => T, about?: About): Promise<T>;
  /**
   * Runs works as dry runs, one after another, and rolls all of them back: `seen` is called after each successful one, before the rollback.
   * Works after `mostMs` are left out. `first` writes rows that all of them see. Outside of a transaction.
   */
  rehearse<T>(
    works: readonly ((queries: Queries) => T)[],
    seen: (queries: Queries, index: number) => void,
    mostMs?: number,
    first?: (queries: Queries) => void,
  ): Rehearsed<T>[];
  /**
   * Reads one moment in as many turns of the event loop as needed: all writes from before the call, and none from after it. Resolves after
   * the data read are on disk.
   */
  snapshot<T>(read: (queries: Queries) => Promise<T>): Promise<T>;
  /** Checkpoints the log as far as readers and writers allow. Resolves after the attempt. */
  checkpoint(): Promise<void>;
  /**
   * Resolves once all data of the owner is on disk, for `host` all data; null if it is. Data read earlier may be lost in a power cut.
   * Without `isOfRecords` audit records of read-only calls are not waited for.
   */
  unflushed(owner: OwnerName, isOfRecords: boolean): Promise<void> | null;
  /** Calls `listener` with the flush time after each commit, before its callers continue. */
  onCommit(listener: (flushMs: number) => void): void;
  /**
   * Calls `write` at the end of each commit, within it: for counters that are updated while writes run and written once for all of them.
   */
  beforeCommit(write: (queries: Queries) => void): void;
  /**
   * Within a transaction: `step` reverts a change in memory, and runs if the transaction is rolled back. Outside of one it is ignored:
   * there is nothing to roll back. Memory that every transaction changes is best a TransactionMap.
   */
  undo(step: () => void): void;
  close(): Promise<void>;
}

/** The database of this host's file; a database that hosts share implements only Database. */
export interface LocalDatabase extends Database {
  /** Runs several works in this order in a separate commit, where each still succeeds or fails alone. Never rejects. */
  commitTogether(
    works: readonly ((queries: Queries) => unknown)[],
    vital: boolean,
  ): Promise<PromiseSettledResult<unknown>[]>;
}

const isOrganization = (owner: OwnerName) => owner.startsWith(NO_ORGANIZATION) && owner !== NO_ORGANIZATION;

/**
 * `onFull` may free space when the disk is full: if it did, the writes are retried. With a `log` commits are flushed by that; without, by
 * SQLite, for which the event loop always waits. `checkpoints` write the log into the file; without them and `log` the connection does.
 * After a failure of the disk `onLost` ends the process, and no write settles any more; without it that write is rejected.
 */
export function makeDatabase(
  connection: Connection,
  onFull: (vital: boolean) => boolean = () => false,
  log: LogSync | null = null,
  checkpoints: Checkpoints | null = log ? null : checkpointsWithin(connection),
  onLost: ((error: DiskFailure) => void) | null = null,
): LocalDatabase {
  const waiting = new FairQueue<Write>();
  let waitingCount = 0;
  /** Committed before the others. */
  const early: Write[] = [];
  /** Each with its followers in a separate commit; commits of other writes come between. */
  const separate: Write[] = [];
  let wasSeparate = false;
  const isAnyWaiting = () => early.length > 0 || waitingCount > 0;
  let timer: Timer | null = null;
  const listeners: ((flushMs: number) => void)[] = [];
  const lastWrites: ((queries: Queries) => void)[] = [];
  const memory = new UndoLog();
  /** The next commit or the one in progress, and the commit after it. */
  let flushing: Promise<void> | null = null;
  let following: Promise<void> | null = null;
  let isUnderWay = false;
  /** The flush in progress and whose changes it has. */
  let unflushed: { flushed: Promise<void>; about: ReadonlySet<About> } | null = null;
  if (log) connection.execute("PRAGMA synchronous = NORMAL");

  /** False if another process is writing. SQLite would block the event loop until that ends. */
  const begins = (): boolean => {
    if (log) connection.step("PRAGMA busy_timeout = 0");
    try {
      connection.step("BEGIN IMMEDIATE");
      return true;
    } catch (error) {
      if (errnoOf(error) !== "SQLITE_BUSY") throw error;
      return false;
    } finally {
      if (log) connection.step(`PRAGMA busy_timeout = ${BUSY_MS}`);
    }
  };
  const beginWithRetry = async () => {
    const until = monotonicMs() + BUSY_MS;
    for (let attempt = 0; !begins(); attempt++) {
      if (monotonicMs() > until) throw new Error("another process has been writing to the database for too long");
      await sleep(backoffMs(BUSY_PAUSE_MS, attempt));
    }
  };

  /** Reports the disk failure. Never settles: no answer may follow. */
  const lose = (error: unknown): Promise<never> => {
    onLost?.(new DiskFailure(`failed to write the database: ${describeError(error)}`, { cause: error }));
    return new Promise<never>(() => {});
  };
  const isFull = (error: unknown) => isDiskFull(error) || (isDiskFailure(error) && isOverQuota(connection.file));

  const nextOfMany = (): Write | undefined => {
    const first = early.shift() ?? waiting.take();
    if (first && !first.isEarly) waitingCount--;
    return first;
  };

  const flush = async () => {
    const isSeparate = separate.length > 0 && !(wasSeparate && isAnyWaiting());
    wasSeparate = isSeparate;
    // Records of reads come first in each commit, so that a chain's records are in order of time.
    const next = isSeparate ? () => early.shift() ?? separate.shift() : nextOfMany;
    stopTimer(timer);
    timer = null;
    /** Writes of this commit so far; on a full disk the same writes are retried. */
    const batch: Write[] = [];
    for (;;) {
      const outcomes: (() => void)[] = [];
      try {
        loopTime.goesOn("host", "db.commit");
        faultPoint("commit.before");
        if (!begins()) await beginWithRetry();
        memory.open();
        const until = monotonicMs() + WRITE_MS;
        for (const write of batch) outcomes.push(attempt(connection, memory, write));
        // Writes queued by these writes are part of the next commit.
        let left = isSeparate ? (batch.length === 0 ? early.length + 1 : 0) : early.length + waitingCount;
        for (
          let write = left > 0 ? next() : undefined;
          write;
          write = --left > 0 && monotonicMs() < until ? next() : undefined
        ) {
          loopTime.goesOn(write.owner, "db.write");
          for (const each of [write, ...write.followers]) {
            batch.push(each);
            outcomes.push(attempt(connection, memory, each));
          }
        }
        loopTime.goesOn("host", "db.commit");
        for (const write of lastWrites) write(connection.queries);
        faultPoint("commit.written");
        connection.step("COMMIT");
        faultPoint("commit.after");
      } catch (error) {
        try {
          connection.execute("ROLLBACK");
        } catch {
          // SQLite has already rolled back, as it does on a full disk.
        }
        memory.backTo(0);
        memory.close();
        // BEGIN itself failed: all queued writes fail or are retried together.
        if (batch.length === 0) for (let write = next(); write; write = next()) batch.push(write, ...write.followers);
        const noSpace = isFull(error);
        if (noSpace && onFull(batch.some(({ vital }) => vital))) continue;
        if (!noSpace && onLost && isDiskFailure(error)) return await lose(error);
        const reason = noSpace ? new ServiceError("disk_full", { cause: error }) : error;
        for (const write of batch) write.reject(reason);
        return;
      }
      memory.close();
      // If this fails, the commit never settles: a caller that got an error would undo data that the database has.
      const writtenAt = monotonicMs();
      const about = new Set(batch.map((write) => write.about));
      const isOfReads = about.size === 1 && about.has("reads");
      let flushed: Promise<void> | null | undefined;
      try {
        flushed = log?.sync(!isOfReads);
      } catch (error) {
        if (onLost) return await lose(error);
        const failure = new DiskFailure("failed to sync the database's log", { cause: error });
        for (const write of batch) write.reject(failure);
        return;
      }
      if (flushed) {
        unflushed = { flushed, about };
        await flushed;
        loopTime.goesOn("host", "db.commit");
        unflushed = null;
      }
      const flushMs = monotonicMs() - writtenAt;
      if (checkpoints?.hasFailed()) return await new Promise<never>(() => {});
      for (const listener of listeners) listener(flushMs);
      await settleAll(outcomes);
      try {
        const restarting = checkpoints?.committed();
        if (restarting) await restarting;
      } catch (error) {
        if (onLost) return await lose(error);
        throw error;
      }
      return;
    }
  };

  const gather = async () => {
    const until = monotonicMs() + GATHER_MS;
    let seen: number;
    do {
      seen = waitingCount;
      await nextTurn();
    } while (waitingCount > seen && monotonicMs() < until);
  };

  const schedule = () => {
    if (flushing && isUnderWay) {
      following ??= flushing.then(() => {
        following = null;
        schedule();
      });
    }
    flushing ??= gather().then(async () => {
      isUnderWay = true;
      await flush();
      isUnderWay = false;
      flushing = null;
      if (separate.length > 0 || waitingCount > 0 || (early.length > 0 && timer === null)) schedule();
    });
  };
  const made = (
    work: (queries: Queries) => unknown,
    vital: boolean,
    { isEarly = false, about = "host" as About, followers = NO_FOLLOWERS } = {},
  ): { write: Write; result: Promise<unknown> } => {
    const { promise: result, resolve, reject } = Promise.withResolvers<unknown>();
    // After an await the work that is under way may be another organization's.
    const owner = about !== "reads" && isOrganization(about) ? about : loopTime.owner;
    return { write: { owner, work, vital, isEarly, about, followers, resolve, reject }, result };
  };
  const add = (write: Write) => {
    waiting.add(write.owner, write);
    waitingCount++;
  };

  return {
    queries: connection.queries,
    commit: <T>(work: (queries: Queries) => T, vital = true, about: About = "host") => {
      schedule();
      const { write, result } = made(work, vital, { about });
      add(write);
      return result as Promise<T>;
    },
    commitTogether: (works, vital) => {
      const [first, ...others] = works;
      if (!first) return Promise.resolve([]);
      schedule();
      const following = others.map((work) => made(work, vital));
      const { write, result } = made(first, vital, { followers: following.map((each) => each.write) });
      separate.push(write);
      return Promise.allSettled([result, ...following.map((each) => each.result)]);
    },
    commitWithin: <T>(ms: number, work: (queries: Queries) => T, about: About = "host") => {
      if (ms === 0) schedule();
      else timer ??= startTimer(schedule, ms);
      const { write, result } = made(work, false, { isEarly: true, about });
      early.push(write);
      return result as Promise<T>;
    },
    rehearse: (works, seen, mostMs = Number.POSITIVE_INFINITY, first = () => {}) => {
      memory.open();
      try {
        connection.step("BEGIN IMMEDIATE");
        first(connection.queries);
        const until = monotonicMs() + mostMs;
        const tried: Rehearsed<ReturnType<(typeof works)[number]>>[] = [];
        for (const [index, work] of works.entries()) {
          if (index > 0 && monotonicMs() > until) break;
          tried.push(rehearseOne(connection, memory, work, (queries) => seen(queries, index)));
        }
        return tried;
      } catch (error) {
        throw asServiceError(error);
      } finally {
        // SQLite may have already rolled back, as it does on a full disk.
        if (connection.isInTransaction()) connection.step("ROLLBACK");
        memory.backTo(0);
        memory.close();
        // A dry run may have cached rows that were rolled back: invalidates the cached rows of this connection.
        noteOthersWrites(connection.queries);
      }
    },
    snapshot: async (read) => {
      const { result, write } = made(() => {}, false);
      schedule();
      add(write);
      await result;
      const reading = openReading(connection.file);
      try {
        reading.hold();
        const pending = unflushed?.flushed;
        const value = await read(reading.queries);
        await pending;
        return value;
      } finally {
        reading.close();
      }
    },
    checkpoint: async () => await checkpoints?.run(),
    unflushed: (owner, isOfRecords) => {
      if (!unflushed) return null;
      const { flushed, about } = unflushed;
      const isSeen = (each: About) =>
        each === "reads" ? isOfRecords : each === owner || !isOrganization(each) || !isOrganization(owner);
      return [...about].some(isSeen) ? flushed : null;
    },
    onCommit: (listener) => void listeners.push(listener),
    beforeCommit: (write) => void lastWrites.push(write),
    undo: (step) => memory.add(step),
    close: async () => {
      if (separate.length > 0 || isAnyWaiting()) schedule();
      while (flushing ?? following) await (flushing ?? following);
      checkpoints?.close();
      if (checkpoints?.hasFailed()) return await new Promise<never>(() => {});
      log?.close();
      try {
        connection.close();
      } catch (error) {
        if (onLost) return await lose(error);
        throw error;
      }
    },
  };
}

/**
 * Settles the writes of a commit. Their callers continue in the same turn; after a time limit, the remaining ones follow in the next turn.
 */
async function settleAll(outcomes: readonly (() => void)[]): Promise<void> {
  let until = monotonicMs() + SETTLE_MS;
  for (const settle of outcomes) {
    settle();
    // The caller continues before this loop does.
    await null;
    if (monotonicMs() < until) continue;
    await nextTurn();
    loopTime.goesOn("host", "db.commit");
    until = monotonicMs() + SETTLE_MS;
  }
}

/** Undo steps for the changes in memory of the commit in progress. */
class UndoLog {
  #steps: (() => void)[] = [];
  #isOpen = false;

  open(): void {
    this.#isOpen = true;
  }

  add(step: () => void): void {
    if (this.#isOpen) this.#steps.push(step);
  }

  mark(): number {
    return this.#steps.length;
  }

  backTo(mark: number): void {
    for (const step of this.#steps.splice(mark).reverse()) step();
  }

  close(): void {
    this.#steps = [];
    this.#isOpen = false;
  }
}

function attempt(connection: Connection, memory: UndoLog, write: Write): () => void {
  const mark = memory.mark();
  connection.step("SAVEPOINT one");
  try {
    const value = write.work(connection.queries);
    connection.step("RELEASE one");
    return () => write.resolve(value);
  } catch (error) {
    // A full or failed disk ends the whole transaction, including savepoints: no write of the batch is kept.
    if (isDiskFull(error) || isDiskFailure(error)) throw error;
    memory.backTo(mark);
    connection.step("ROLLBACK TO one");
    connection.step("RELEASE one");
    return () => write.reject(error);
  }
}

function rehearseOne<T>(
  connection: Connection,
  memory: UndoLog,
  work: (queries: Queries) => T,
  seen: (queries: Queries) => void,
): Rehearsed<T> {
  const mark = memory.mark();
  connection.step("SAVEPOINT one");
  try {
    const done = tried(connection.queries, work, () => seen(connection.queries));
    connection.step("RELEASE one");
    return done;
  } catch (error) {
    if (isDiskFull(error)) throw error;
    memory.backTo(mark);
    connection.step("ROLLBACK TO one");
    connection.step("RELEASE one");
    return { error };
  }
}

function asServiceError(error: unknown): unknown {
  return isDiskFull(error) ? new ServiceError("disk_full", { cause: error }) : error;
}

/** Whether an insert violated a unique index on this column (`table.column`). */
export function violatesUnique(error: unknown, column: string): boolean {
  return causesOf(error).some(
    ({ message }) => message.includes("UNIQUE constraint failed") && message.includes(column),
  );
}

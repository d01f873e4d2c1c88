/**
 * Flushing of the database's log to disk, by a dedicated thread: during continuous writes of a guest a flush takes a second, in which the
 * event loop would answer no request. While the disk is quick the event loop waits for it, at most as long as a quick flush takes:
 * notification by an event costs every commit a quarter of a millisecond. Flushes would block a shared thread pool.
 *
 * A flush that fails is the last one: the kernel may have dropped the pages it could not write, and a later flush would not report that
 * (fsync(2), "Dealing with error on fsync"). Frames after a gap in the log would not be found after a loss of power.
 */
import { closeSync, existsSync, fdatasyncSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { monotonicMs } from "../core/clock.ts";
import { DiskFailure, isDiskFailure, isOutOfSpace, unlessFull } from "../core/disk-failure.ts";
import { describeError, errnoOf } from "../core/service-error.ts";
import { type Connection, withExclusive } from "./client.ts";
import { FlushLatency, QUICK_MS } from "./flush-latency.ts";
import { FLUSHES, makeFlushes } from "./flushes.ts";
import { type Discarded, discardedFrames } from "./log-frames.ts";

export interface LogSync {
  /**
   * Null if all earlier writes to the log are on disk; otherwise a promise that resolves when they are. If the flush fails, the promise
   * never settles, and the process ends. `isUrgent` false: the event loop does not wait for the flush; default true.
   */
  sync(isUrgent?: boolean): Promise<void> | null;
  close(): void;
}

/**
 * For a database in WAL mode that has been written to, and stays open for as long as this is. `onLost` is called at the first failure and
 * ends the process: only another process can find out what is on disk.
 */
export function makeLogSync(
  database: string,
  onLost: (error: DiskFailure) => void,
  trust = new FlushLatency(),
): LogSync {
  const log = openSync(`${database}-wal`, "r");
  // Makes the log's directory entry durable: the log may be new.
  syncDirectory(dirname(database));
  const flushes = makeFlushes();
  const waiting: { asked: number; settle(): void }[] = [];
  let isLost = false;
  const lose = (why: string) => {
    if (isLost) return;
    isLost = true;
    onLost(new DiskFailure(`the database's log was not flushed: ${why}`));
  };
  const thread = new Worker(new URL("./sync-thread.ts", import.meta.url).href);
  thread.postMessage({ flushes, log });
  // The counters are 32-bit and wrap around.
  const isDone = (ticket: number) => ((Atomics.load(flushes, FLUSHES.done) - ticket) | 0) >= 0;
  const settle = () => {
    for (let first = waiting[0]; first && isDone(first.asked); first = waiting[0]) {
      waiting.shift();
      // Measured by the thread: a busy event loop is notified late.
      trust.took(Atomics.load(flushes, FLUSHES.took) / 1000);
      first.settle();
    }
    if (waiting.length === 0) return;
    Atomics.store(flushes, FLUSHES.isAwaited, 1);
    // The flush may have completed before the thread saw the request.
    if (isDone(waiting[0]?.asked ?? 0)) settle();
  };
  thread.onmessage = ({ data: failure }: MessageEvent<string | null>) => {
    if (failure !== null) lose(failure);
    else if (!isLost) settle();
  };
  thread.onerror = ({ message }) => lose(`its thread has ended: ${message}`);
  return {
    sync: (isUrgent = true) => {
      const ticket = (Atomics.add(flushes, FLUSHES.asked, 1) + 1) | 0;
      Atomics.notify(flushes, FLUSHES.asked);
      if (isUrgent && waiting.length === 0 && !isLost && trust.isQuick()) {
        const startedAt = monotonicMs();
        Atomics.wait(flushes, FLUSHES.done, (ticket - 1) | 0, QUICK_MS);
        // The whole wait, even if the thread itself had no processor.
        trust.took(monotonicMs() - startedAt);
        if (isDone(ticket)) return null;
      }
      return new Promise((resolve) => {
        waiting.push({ asked: ticket, settle: resolve });
        settle();
      });
    },
    close: () => {
      Atomics.store(flushes, FLUSHES.isOver, 1);
      Atomics.add(flushes, FLUSHES.asked, 1);
      Atomics.notify(flushes, FLUSHES.asked);
      thread.terminate();
      closeSync(log);
    },
  };
}

/** Synchronous form, for a command concurrent with the daemon: it flushes after its transaction has released the lock. */
export function makeOwnLogSync(database: string): LogSync {
  const log = openSync(`${database}-wal`, "r");
  syncDirectory(dirname(database));
  return {
    sync: () => {
      fdatasyncSync(log);
      return null;
    },
    close: () => closeSync(log),
  };
}

/** Time to wait for operator commands that have the database open. */
const ALONE_MS = 2_000;
const ALONE_AFTER_FAILURE_MS = 10_000;

interface WholeLogOptions {
  /** Whether the previous daemon ended because of a disk failure. */
  afterFailure: boolean;
  /** Time to wait for other processes that have the database open. */
  aloneMs?: number;
}

/**
 * At the start of a daemon: writes the whole log of the previous daemon into the database. Pages that count as written may have been lost
 * in a failed sync, as long as the log has not restarted. The count of written pages is in memory shared by processes, so no other process
 * may have the database open; after an ordinary end the log may stay. Returns the frames that recovery has discarded. Throws DiskFailure.
 */
export function writeWholeLog(
  database: string,
  { afterFailure, aloneMs = afterFailure ? ALONE_AFTER_FAILURE_MS : ALONE_MS }: WholeLogOptions,
): Discarded {
  let discarded: Discarded = { frames: 0, commits: 0 };
  if (!existsSync(`${database}-wal`)) return discarded;
  try {
    withExclusive(database, aloneMs, (connection) => {
      rewriteLog(connection, database);
      discarded = discardedOf(connection, database);
      unlessFull(() => connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"), database);
    });
  } catch (error) {
    const isBusy = errnoOf(error)?.startsWith("SQLITE_BUSY");
    if (isBusy && !afterFailure) return discarded;
    if (!isBusy && !isDiskFailure(error) && !(error instanceof DiskFailure)) throw error;
    const detail = isBusy
      ? `the disk has failed, and another process still has the database open: end it (fuser ${database})`
      : `failed to write the database: ${describeError(error)}`;
    throw new DiskFailure(detail, { cause: error });
  }
  return discarded;
}

function discardedOf(connection: Pick<Connection, "log">, database: string): Discarded {
  const log = openSync(`${database}-wal`, "r");
  try {
    return discardedFrames(log, Math.max(0, connection.log().pages));
  } finally {
    closeSync(log);
  }
}

/**
 * After a failed flush, data read from a log may be in the kernel's memory alone, and count as flushed. So the log of the previous daemon
 * is written over itself, before anything is appended. For a connection in no transaction. Throws if the log cannot be preserved.
 */
export function rewriteLog(connection: Pick<Connection, "execute">, database: string): void {
  if (!existsSync(`${database}-wal`)) return;
  // Keeps other processes from appending to it or restarting it.
  connection.execute("BEGIN IMMEDIATE");
  const log = openSync(`${database}-wal`, "r+");
  try {
    const piece = Buffer.allocUnsafe(REWRITE_BYTES);
    for (let at = 0, count = 1; count > 0; at += count) {
      count = readSync(log, piece, 0, piece.length, at);
      if (count > 0) count = writeSync(log, piece, 0, count, at);
    }
    fdatasyncSync(log);
  } catch (error) {
    // If even rewriting needs space, a daemon that can delete is worth more.
    if (!isOutOfSpace(error)) throw new DiskFailure("failed to write the database's log", { cause: error });
  } finally {
    connection.execute("ROLLBACK");
    closeSync(log);
  }
}

const REWRITE_BYTES = 1024 * 1024;

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/**
 * Checkpoints: the database's log is written into the database, so that the log can restart. By default SQLite does that in the commit that
 * makes the log long enough, which blocks the event loop for tens of milliseconds, and ignores a failure. So a dedicated thread does it
 * while commits continue. For the last pages the next commit waits, and the event loop does not. The thread also restarts the log, since
 * the first write to it syncs its header.
 *
 * A failure is the last checkpoint (log-sync.ts has the reason): pages that were written into the file may be lost, and are in the log
 * alone, which therefore must not restart. A full disk only leaves the log as it is.
 */
import { DiskFailure, unlessFull } from "../core/disk-failure.ts";
import type { Connection } from "./client.ts";

/** Indexes of the memory shared by the event loop and the thread. */
export const CHECKPOINTS = {
  /** Number of requests. */
  asked: 0,
  /** 1: no further requests follow. */
  isOver: 1,
  /** 1: the thread has closed its connection. */
  hasEnded: 2,
  /** 1: a checkpoint has failed. */
  hasFailed: 3,
} as const;

/**
 * Pages between two checkpoints: a quarter of the length at which the log restarts; takes the thread some milliseconds and two disk
 * flushes.
 */
const PAGES = 1024;
/** Length from which the log must restart. */
const LONG_PAGES = 4_000;
/** Maximum number of pages that a commit waits for: two milliseconds of work, and a flush. */
const FEW_PAGES = 256;
/** Growth of the log between two commits that wait: a reader may prevent its restart. */
const RETRY_PAGES = 64;
/** Time for the thread to end; it may be in a checkpoint. */
const END_MS = 5_000;

export interface Checkpoints {
  /** Called after each commit. Returns a promise if the log must restart: the next commit waits for it. */
  committed(): Promise<void> | null;
  /** Checkpoints as many pages as possible. Never rejects. */
  run(): Promise<void>;
  /** Whether a failed checkpoint is ending the service. */
  hasFailed(): boolean;
  /** Ends the thread and closes its connection. */
  close(): void;
}

/**
 * Checkpoints in a separate thread, for a database in WAL mode that has been written to; `connection` is its writer. `onLost` is called at
 * the first failure.
 */
export function makeCheckpoints(
  file: string,
  connection: Pick<Connection, "log">,
  onLost: (error: DiskFailure) => void,
): Checkpoints {
  const places = new Int32Array(new SharedArrayBuffer(Object.keys(CHECKPOINTS).length * 4));
  const thread = new Worker(new URL("./checkpoint-thread.ts", import.meta.url).href);
  const waiting: { asked: number; settle(): void }[] = [];
  let isLost = false;
  const lose = (reason: string) => {
    if (isLost) return;
    isLost = true;
    Atomics.store(places, CHECKPOINTS.hasFailed, 1);
    onLost(new DiskFailure(`failed to write the log into the database: ${reason}`));
  };
  thread.onmessage = ({ data }: MessageEvent<number | string>) => {
    if (typeof data === "string") return lose(data);
    while (waiting[0] && waiting[0].asked <= data) waiting.shift()?.settle();
  };
  thread.onerror = ({ message }) => {
    Atomics.store(places, CHECKPOINTS.hasEnded, 1);
    lose(`its thread has ended: ${message}`);
  };
  thread.postMessage({ places, file });
  /** Log size in pages at the last request, and at the last one that a commit waited for. */
  let requestedAt = 0;
  let waitedAt = 0;
  const request = (): number => {
    const ticket = Atomics.add(places, CHECKPOINTS.asked, 1) + 1;
    Atomics.notify(places, CHECKPOINTS.asked);
    return ticket;
  };
  const run = (): Promise<void> => new Promise((settle) => waiting.push({ asked: request(), settle }));
  return {
    committed: () => {
      const { pages, written } = connection.log();
      // The log may have restarted.
      if (pages < requestedAt) requestedAt = written;
      if (pages < waitedAt) waitedAt = 0;
      const isAlmostWritten = pages > written && pages - written <= FEW_PAGES;
      if (pages >= LONG_PAGES && isAlmostWritten && pages - waitedAt >= RETRY_PAGES) {
        requestedAt = waitedAt = pages;
        return run();
      }
      if (pages - requestedAt >= PAGES) {
        requestedAt = pages;
        request();
      }
      return null;
    },
    run,
    hasFailed: () => Atomics.load(places, CHECKPOINTS.hasFailed) === 1,
    close: () => {
      Atomics.store(places, CHECKPOINTS.isOver, 1);
      request();
      // A thread terminated earlier would keep its locks.
      Atomics.wait(places, CHECKPOINTS.hasEnded, 0, END_MS);
      thread.terminate();
    },
  };
}

/** Checkpoints on the connection itself, where no event loop with other work is blocked. `committed` throws errors of SQLite. */
export function checkpointsWithin(connection: Pick<Connection, "log" | "step">): Checkpoints {
  const checkpoint = () => connection.step("PRAGMA wal_checkpoint(PASSIVE)");
  return {
    committed: () => {
      if (connection.log().pages >= LONG_PAGES) unlessFull(checkpoint);
      return null;
    },
    run: async () => checkpoint(),
    hasFailed: () => false,
    close: () => {},
  };
}

/**
 * Checkpoints: when the database's log is written into the database. By itself SQLite does that in the commit that makes the log long enough: 16
 * MiB block the event loop for tens of milliseconds, and pages that a reader has held back for an hour for seconds. So a
 * thread of its own does most of it while commits go on. The event loop writes the last few pages, so that the log restarts.
 */

import type { Connection } from "./client.ts";

/** What both tell each other: places in memory that both have. */
export const CHECKPOINTS = {
  /** How often it was asked for. */
  asked: 0,
  /** 1: it will be no more. */
  isOver: 1,
  /** 1: the thread has closed its connection. */
  hasEnded: 2,
} as const;

/** A quarter of what makes the log long enough: some milliseconds of the thread's, and two flushes of the disk. */
const PAGES = 1024;
/** Length of a log that is to restart. */
const LONG_PAGES = 4_000;
/** Most pages that the event loop writes: two milliseconds of work. */
const FEW_PAGES = 256;
/** Of the thread, which may be at one just now. */
const END_MS = 5_000;

export interface Checkpoints {
  /** One more is in the log. */
  committed(): void;
  /** Nothing of it is open any more. */
  close(): void;
}

/** Of a database in WAL mode that has been written to, and the connection that writes. */
export function makeCheckpoints(file: string, connection: Pick<Connection, "log" | "execute">): Checkpoints {
  connection.execute("PRAGMA wal_autocheckpoint = 0");
  const places = new Int32Array(new SharedArrayBuffer(Object.keys(CHECKPOINTS).length * 4));
  const thread = new Worker(new URL("./checkpoint-thread.ts", import.meta.url).href);
  // What ends it has closed its connection, or never had one.
  thread.onerror = () => Atomics.store(places, CHECKPOINTS.hasEnded, 1);
  thread.postMessage({ places, file });
  /** So many pages were in the log when it was last asked for. */
  let asked = 0;
  const ask = () => {
    Atomics.add(places, CHECKPOINTS.asked, 1);
    Atomics.notify(places, CHECKPOINTS.asked);
  };
  return {
    committed: () => {
      const { pages, written } = connection.log();
      // The log may have restarted.
      if (pages < asked) asked = written;
      const isAlone = Atomics.load(places, CHECKPOINTS.hasEnded) === 1;
      if (pages >= LONG_PAGES && pages > written && (pages - written <= FEW_PAGES || isAlone)) {
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)");
      }
      if (pages - asked < PAGES) return;
      asked = pages;
      ask();
    },
    close: () => {
      Atomics.store(places, CHECKPOINTS.isOver, 1);
      ask();
      // Ended before, it would keep its locks.
      Atomics.wait(places, CHECKPOINTS.hasEnded, 0, END_MS);
      thread.terminate();
    },
  };
}

/**
 * Owns flushing the database's log to disk: by the event loop itself while the disk is quick, and else by a thread of its own.
 * Beside a guest that writes without end a flush takes a second, in which the event loop would answer nobody; by way of the thread
 * each costs a quarter of a millisecond more. Threads that others share would be held up by flushes.
 *
 * A flush that fails is the last one: the kernel may have dropped what it could not write, and a later flush would not tell
 * (fsync(2), "Dealing with error on fsync"). Nothing that comes after a gap in the log would be found after a loss of power.
 */
import { closeSync, fdatasyncSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DiskTrust } from "./disk-trust.ts";

export interface LogSync {
  /** Null once all that was written to the log before is on disk; else that, when it is. Should it fail, that never settles, and the process ends. */
  sync(): Promise<void> | null;
  close(): void;
}

/**
 * Of a database in WAL mode that has been written to, and stays open for as long as this is. `onLost` hears of the first failure and
 * ends the process: what is on disk only another one can tell.
 */
export function makeLogSync(database: string, onLost: (error: Error) => void, trust = new DiskTrust()): LogSync {
  const log = openSync(`${database}-wal`, "r");
  // The log itself may be new.
  syncDirectory(dirname(database));
  const waiting: (() => void)[] = [];
  let isLost = false;
  const lose = (why: string) => {
    if (isLost) return;
    isLost = true;
    onLost(new Error(`the database's log was not flushed: ${why}`));
  };
  const thread = new Worker(new URL("./sync-thread.ts", import.meta.url).href);
  thread.onmessage = ({ data: said }: MessageEvent<number | string>) => {
    if (typeof said === "string") return lose(said);
    trust.took(said);
    if (!isLost) waiting.shift()?.();
  };
  thread.onerror = ({ message }) => lose(`its thread has ended: ${message}`);
  const syncNow = () => {
    const startedAt = performance.now();
    try {
      fdatasyncSync(log);
    } catch (error) {
      lose(String(error));
      return new Promise<void>(() => {});
    }
    trust.took(performance.now() - startedAt);
    return null;
  };
  return {
    sync: () => {
      if (waiting.length === 0 && !isLost && trust.isQuick()) return syncNow();
      return new Promise((resolve) => {
        waiting.push(resolve);
        thread.postMessage(log);
      });
    },
    close: () => {
      thread.terminate();
      closeSync(log);
    },
  };
}

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

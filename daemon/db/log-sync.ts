/**
 * Owns flushing the database's log to disk, by a thread of its own: beside a guest that writes without end a flush takes a second,
 * in which the event loop would answer nobody. Threads that others share would be held up by them.
 */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";

export interface LogSync {
  /** Resolves once all that was written to the log before is on disk. Rejects when it cannot be. */
  sync(): Promise<void>;
  close(): void;
}

/** Of a database in WAL mode that has been written to, and stays open for as long as this is. */
export function makeLogSync(database: string): LogSync {
  const log = openSync(`${database}-wal`, "r");
  // The log itself may be new.
  syncDirectory(dirname(database));
  const waiting: PromiseWithResolvers<void>[] = [];
  let gone: Error | null = null;
  const thread = new Worker(new URL("./sync-thread.ts", import.meta.url).href);
  thread.onmessage = ({ data: failure }: MessageEvent<string | null>) => {
    const first = waiting.shift();
    if (failure === null) first?.resolve();
    else first?.reject(new Error(`the database's log was not flushed: ${failure}`));
  };
  thread.onerror = ({ message }) => {
    gone = new Error(`the thread that flushes the database's log has ended: ${message}`);
    for (const each of waiting.splice(0)) each.reject(gone);
  };
  return {
    sync: () => {
      if (gone) return Promise.reject(gone);
      const asked = Promise.withResolvers<void>();
      waiting.push(asked);
      thread.postMessage(log);
      return asked.promise;
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

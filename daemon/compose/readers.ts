/** The reader threads of a daemon. */
import { availableParallelism } from "node:os";
import type { Log } from "../core/log.ts";
import { ReadPool } from "../db/readers/pool.ts";
import type { Database } from "../db/transact.ts";

const MAX_THREADS = 2;

/** One core remains for the event loop; on a host with one core a thread shares it by the kernel's time slices. */
export function makeReaders(database: Database, file: string, log: Log): ReadPool {
  return new ReadPool(database, {
    file,
    count: Math.max(1, Math.min(MAX_THREADS, availableParallelism() - 1)),
    start: () => new Worker(new URL("./read-thread.ts", import.meta.url).href),
    log,
  });
}

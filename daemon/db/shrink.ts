/**
 * Owns giving the disk back what the database no longer needs. Deleted rows leave free pages inside the file; they are moved to its
 * end and cut off some at a time, so that others' commits come in between.
 *
 * A file can do this from its first page on, or once it was rewritten: `rewriteOnce` does that for one of an older roomd.
 */
import { existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { monotonicMs } from "../core/clock.ts";
import { isDiskFailure, isOverQuota } from "../core/disk-failure.ts";
import type { Log } from "../core/log.ts";
import { describeError } from "../core/service-error.ts";
import { type Connection, rawQuery } from "./client.ts";
import type { Database } from "./transact.ts";

/** Free pages that stay for what is written next: at least so many, and this share of the file. */
const KEPT_PAGES = 512;
const KEPT_SHARE = 1 / 32;
/** Pages of one commit: a millisecond or two. */
const PAGES_AT_ONCE = 64;
/** `PRAGMA auto_vacuum` of a file that can be shrunk. */
const INCREMENTAL = 2;

/**
 * Shrinks the file while more than twice of what stays free is free. To be called again and again: what cannot be cut off just now is the
 * next time. Throws what commits throw.
 */
export async function shrink(database: Database): Promise<void> {
  const { queries } = database;
  const pragma = (name: string) => {
    const read = rawQuery<Record<string, number>>(queries, `PRAGMA ${name}`);
    return (): number => Object.values(read([])[0] ?? {})[0] ?? 0;
  };
  const [free, pages] = [pragma("freelist_count"), pragma("page_count")];
  const kept = () => Math.max(KEPT_PAGES, Math.ceil(pages() * KEPT_SHARE));
  if (pragma("auto_vacuum")() !== INCREMENTAL) return;
  if (free() > 2 * kept()) {
    const cut = rawQuery(queries, `PRAGMA incremental_vacuum(${PAGES_AT_ONCE})`);
    while (free() > kept()) await database.commit(() => void cut([]));
  }
  // Only what is written into the file itself makes it shorter; nobody waits for readers, or for the thread that may be writing just now.
  const [{ file } = { file: "" }] = rawQuery<{ file: string }>(queries, "PRAGMA database_list")([]);
  const isLonger = file !== "" && statSync(file).size > pages() * pragma("page_size")();
  if (isLonger) await database.checkpoint();
}

/** Larger ones would keep the service away for too long. */
const MOST_BYTES_REWRITTEN = 1024 ** 3;

/** Where SQLite puts the copy that a rewrite makes first. */
const temporaryDirectory = () =>
  [process.env.SQLITE_TMPDIR, process.env.TMPDIR, "/var/tmp", "/tmp"].find((path) => path && existsSync(path)) ?? ".";

/** Before any other use of the connection. A process that is killed meanwhile leaves the file as it was. Throws only if the disk fails. */
export function rewriteOnce(connection: Connection, file: string, log: Log): void {
  if (connection.pragma("auto_vacuum") === INCREMENTAL) return;
  // With what is still in the log.
  const bytes = Number(connection.pragma("page_count")) * Number(connection.pragma("page_size"));
  const mib = Math.ceil(bytes / 1024 ** 2);
  const startedAt = monotonicMs();
  try {
    requirePlace(file, bytes);
    log.info("rewriting the database once, so that it can give space back", { mib });
    // Of any size: not in memory.
    connection.execute("PRAGMA temp_store = FILE");
    connection.execute("VACUUM");
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    log.info("the database is rewritten", { ms: Math.round(monotonicMs() - startedAt) });
  } catch (error) {
    if (isDiskFailure(error) && !isOverQuota(file)) throw error;
    const remedy = "Until then it does not shrink. A backup that is restored is rewritten.";
    log.warn("the database was not rewritten", { mib, error: describeError(error), remedy });
  } finally {
    connection.execute("PRAGMA temp_store = MEMORY");
  }
}

/** Throws where it is too large for a start, or where there is no space for its copies: SQLite's own, and the log. */
function requirePlace(file: string, bytes: number): void {
  if (bytes > MOST_BYTES_REWRITTEN) throw new Error("it is too large to be rewritten at a start");
  for (const path of [dirname(file), temporaryDirectory()]) {
    const { bavail, bsize } = statfsSync(path);
    if (bavail * bsize < 2 * bytes) throw new Error(`${path} has too little free space`);
  }
}

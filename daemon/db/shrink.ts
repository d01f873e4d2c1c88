/**
 * Returns free space of the database file to the file system. Deleted rows leave free pages inside the file; they are moved to its end and
 * truncated in steps, so that other commits can run in between.
 */
import { statSync } from "node:fs";
import { rawQuery } from "./client.ts";
import type { Database } from "./transact.ts";

/** Free pages that stay for later writes: the larger of this number and this share of the file. */
const KEPT_PAGES = 512;
const KEPT_SHARE = 1 / 32;
/** Pages per commit: one or two milliseconds. */
const PAGES_AT_ONCE = 64;
/** `PRAGMA auto_vacuum` value of a file that can be shrunk. */
const INCREMENTAL = 2;

/**
 * Shrinks the file while more than twice the reserve is free. Call it periodically: pages that cannot be truncated now are truncated at a
 * later call. Throws errors of commits.
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
  // Only a write into the file itself makes it shorter; this does not wait for readers, or for the thread that may be writing.
  const [{ file } = { file: "" }] = rawQuery<{ file: string }>(queries, "PRAGMA database_list")([]);
  const isLonger = file !== "" && statSync(file).size > pages() * pragma("page_size")();
  if (isLonger) await database.checkpoint();
}

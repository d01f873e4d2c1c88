/** Paths in a drive's store (drive-store.ts): the list of its entries, and the contents of its files, by number. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

const SHARDS = 256;

export const entriesIn = (store: string) => join(store, "entries.ndjson");
export const contentIn = (store: string, number: number) => join(store, "contents", shardOf(number), String(number));

/** Asynchronous, because 257 directories take 20 to 60 ms of the thread. */
export async function makeStoreDirectories(store: string): Promise<void> {
  await mkdir(store, { recursive: true, mode: 0o700 });
  for (const shard of shardsIn(store)) await mkdir(shard, { recursive: true });
}

/** The directories of the contents. */
export function shardsIn(store: string): string[] {
  return Array.from({ length: SHARDS }, (_, shard) => join(store, "contents", shardOf(shard)));
}

const shardOf = (number: number) => (number % SHARDS).toString(16).padStart(2, "0");

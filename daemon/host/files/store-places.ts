/** Owns where what a drive was kept as lies in its store (drive-store.ts): the list of its entries, and what is in its files, by numbers. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";

const SHARDS = 256;

export const entriesIn = (store: string) => join(store, "entries.ndjson");
export const contentIn = (store: string, number: number) => join(store, "contents", shardOf(number), String(number));

export function makeStoreDirectories(store: string): void {
  mkdirSync(store, { recursive: true, mode: 0o700 });
  for (const shard of shardsIn(store)) mkdirSync(shard, { recursive: true });
}

/** The directories in which contents lie. */
export function shardsIn(store: string): string[] {
  return Array.from({ length: SHARDS }, (_, shard) => join(store, "contents", shardOf(shard)));
}

const shardOf = (number: number) => (number % SHARDS).toString(16).padStart(2, "0");

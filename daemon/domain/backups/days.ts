/**
 * Closed days of the audit in the object store: each is an object of its own, sent once. Backups do not contain them, and a restore fetches
 * the days that its database names.
 *
 *     PREFIX/audit/HOST/MARK/2026-11-29.db-SHA256   MARK is of the passphrase: with another one all days are sent again
 */

import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import type { S3Plan } from "./deps.ts";
import { daysPrefix } from "./names.ts";
import { BrokenBackup, markOf, opened } from "./seal.ts";
import { ObjectStore, StoreError } from "./store.ts";
import { listStored, prove, send } from "./upload.ts";

/** A closed day by its name and the hash of its content. */
export interface Day {
  name: string;
  sha256: string;
}

export interface SentDays {
  sent: number;
  /** Names of days with changed files. */
  damaged: string[];
}

const keyOf = (plan: S3Plan, hostId: string, mark: string, { name, sha256 }: Day) =>
  `${daysPrefix(plan, hostId)}${mark}/${name}-${sha256}`;

/** Sends the days that the store does not have. Throws StoreError, and errors of the files. */
export async function sendDays(
  plan: S3Plan,
  hostId: string,
  days: readonly (Day & { file: string })[],
  signal?: AbortSignal,
): Promise<SentDays> {
  const [store, last] = [new ObjectStore(plan, signal), new ObjectStore(plan)];
  const mark = await markOf(plan.passphrase);
  const there = new Set((await store.list(daysPrefix(plan, hostId))).map(({ key }) => key));
  const damaged: string[] = [];
  let sent = 0;
  for (const day of days) {
    const key = keyOf(plan, hostId, mark, day);
    if (there.has(key)) continue;
    const { sha256 } = await send(store, last, key, createReadStream(day.file), plan.passphrase);
    if (sha256 !== day.sha256) {
      await last.remove(key);
      damaged.push(day.name);
      continue;
    }
    if (plan.readBack)
      await prove(plan, store, key, day).catch(async (error: unknown) => {
        await last.remove(key).catch(() => {});
        throw error;
      });
    sent++;
  }
  return { sent, damaged };
}

/** Deletes days that were purged before the oldest backup of the host was made. Throws StoreError. */
export async function retireDays(
  plan: S3Plan,
  hostId: string,
  purged: readonly (Day & { removed_at: string })[],
): Promise<void> {
  if (plan.keep === 0) return;
  const store = new ObjectStore(plan);
  const own = (await listStored(plan, store)).filter(({ host_id }) => host_id === hostId);
  // By the clock that removals have too.
  const [oldest] = own.map(({ made_at }) => made_at).sort();
  if (oldest === undefined) return;
  const names = new Set(
    purged.filter(({ removed_at }) => removed_at < oldest).map(({ name, sha256 }) => `${name}-${sha256}`),
  );
  for (const { key } of await store.list(daysPrefix(plan, hostId)))
    if (names.has(key.slice(key.lastIndexOf("/") + 1))) await store.remove(key);
}

/**
 * Writes a day that a backup of this host names into a file. Returns false, without the file, if the store lacks it or has another. Throws
 * StoreError, WrongPassphrase.
 */
export async function fetchDay(
  plan: S3Plan,
  { bucket, hostId, day, to }: { bucket: string; hostId: string; day: Day; to: string },
): Promise<boolean> {
  const key = keyOf(plan, hostId, await markOf(plan.passphrase), day);
  const digest = createHash("sha256");
  const read = async function* () {
    for await (const piece of opened(new ObjectStore({ ...plan, bucket }).read(key), plan.passphrase)) {
      digest.update(piece);
      yield piece;
    }
  };
  try {
    await pipeline(read, createWriteStream(to, { flags: "wx", mode: 0o400 }));
    if (digest.digest("hex") === day.sha256) return true;
  } catch (error) {
    const isLost = error instanceof BrokenBackup || (error instanceof StoreError && error.code === "NoSuchKey");
    if (!isLost) throw error;
  }
  await rm(to, { force: true });
  return false;
}

/**
 * Closed days of the audit in the object store: each is an object of its own, sent once. Backups do not contain them, and a restore fetches
 * the days that its database names.
 *
 *     PREFIX/audit/HOST/MARK/2026-11-29.db-SHA256   MARK is of the passphrase: with another one all days are sent again
 *
 * An object is not trusted by its key. Each backup compares the sizes of all and, if backups are read back, the hashes of two: of the last
 * stored, unless a complete backup has followed it, since a crash may have come before it was read back; and of each day in turn. A damaged
 * object is sent again.
 */

import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { wallMs } from "../../core/clock.ts";
import type { S3Plan } from "./deps.ts";
import { daysPrefix, nameIn, readName } from "./names.ts";
import { ObjectStore, type StoredObject, StoreError } from "./object-store.ts";
import { BrokenBackup, markOf, opened, sealedBytes, WrongPassphrase } from "./seal.ts";
import { listStored, OtherContent, prove, send } from "./upload.ts";

const DAY_MS = 24 * 3600 * 1000;

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

/** Sends the days that the store does not have, or has damaged. Throws StoreError, BrokenBackup, and errors of the files. */
export async function sendDays(
  plan: S3Plan,
  hostId: string,
  days: readonly (Day & { file: string })[],
): Promise<SentDays> {
  const store = new ObjectStore(plan);
  const mark = await markOf(plan.passphrase);
  const objects = await store.list(plan.prefix);
  const stored = new Map(objects.map((object) => [object.key, object]));
  const unprovenMs = unprovenOf(plan, hostId, objects);
  const inTurn = Math.floor(wallMs() / DAY_MS) % days.length;
  const damaged: string[] = [];
  let sent = 0;
  for (const [index, day] of days.entries()) {
    const key = keyOf(plan, hostId, mark, day);
    const object = stored.get(key);
    const reads = plan.readBack && (object?.storedMs === unprovenMs || index === inTurn);
    if (object && (await isIntact(plan, store, object, { ...day, reads }))) continue;
    const { passphrase } = plan;
    try {
      await send(store, store, key, createReadStream(day.file), { passphrase, expected: day.sha256 });
    } catch (error) {
      if (!(error instanceof OtherContent)) throw error;
      damaged.push(day.name);
      continue;
    }
    if (plan.readBack)
      await prove(plan, store, key, day).catch(async (error: unknown) => {
        await store.remove(key).catch(() => {});
        throw error;
      });
    sent++;
  }
  return { sent, damaged };
}

/** Time at which the host's last day was stored; null if a complete backup has followed. */
function unprovenOf(plan: S3Plan, hostId: string, objects: readonly StoredObject[]): number | null {
  const newest = (isWanted: (key: string) => boolean) =>
    objects.reduce((newest, { key, storedMs }) => (isWanted(key) ? Math.max(newest, storedMs) : newest), 0);
  const day = newest((key) => key.startsWith(daysPrefix(plan, hostId)));
  const backup = newest((key) => readName(nameIn(plan, key) ?? "")?.host_id === hostId);
  return backup > day ? null : day;
}

/** The key of an object contains the mark of its passphrase: another one is damage too. */
const isDamaged = (error: unknown) => error instanceof BrokenBackup || error instanceof WrongPassphrase;

/** Whether an object has the size of the sealed file and, if it `reads` the object, the content. Throws StoreError. */
async function isIntact(
  plan: S3Plan,
  store: ObjectStore,
  { key, size_bytes }: StoredObject,
  { file, sha256, reads }: { file: string; sha256: string; reads: boolean },
): Promise<boolean> {
  if (size_bytes !== sealedBytes((await stat(file)).size)) return false;
  if (!reads) return true;
  try {
    await prove(plan, store, key, { sha256 });
    return true;
  } catch (error) {
    if (isDamaged(error)) return false;
    throw error;
  }
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
  // made_at is from the same clock as removed_at.
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
 * StoreError.
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
    const isLost = isDamaged(error) || (error instanceof StoreError && error.code === "NoSuchKey");
    if (!isLost) throw error;
  }
  await rm(to, { force: true });
  return false;
}

/**
 * Upload of a backup into the object store:
 *
 *     unfinished uploads of earlier runs are aborted → the stream is sealed and sent part by part ⇒ completed: named
 *     → it is read back, each piece opened ⇒ proven whole → those above the number to retain are deleted, oldest first
 *
 * A failure before it is proven retains all previous backups, and leaves nothing of this one.
 */
import { createHash } from "node:crypto";
import { wallMs } from "../../core/clock.ts";
import type { S3Plan, Stored } from "./deps.ts";
import { daysPrefix, keyOf, nameIn, nameOf, readName } from "./names.ts";
import { ObjectStore } from "./object-store.ts";
import { piecesOf } from "./pieces.ts";
import { BrokenBackup, opened, sealed } from "./seal.ts";

const MIB = 1024 ** 2;

export interface Uploaded extends Stored {
  /** Total size before sealing. */
  bytes: number;
  is_read_back: boolean;
  /** Names of backups that were deleted for this one. */
  deleted: string[];
  /** Why older backups could not be deleted; null if they could. */
  undeleted: string | null;
}

interface How {
  hostId: string;
  signal?: AbortSignal | undefined;
  onStage?(stage: string): void;
  at?: Date;
}

/** Only one upload per host at a time. Throws StoreError, BrokenBackup, and errors of the source. */
export async function upload(plan: S3Plan, source: AsyncIterable<Uint8Array>, how: How): Promise<Uploaded> {
  const { hostId, signal, onStage = () => {}, at = new Date(wallMs()) } = how;
  const store = new ObjectStore(plan, signal);
  // For the cleanup after the signal was aborted.
  const last = new ObjectStore(plan);
  const name = nameOf(hostId, at);
  const key = keyOf(plan, name);
  await abandonLeft(plan, store, hostId);
  onStage("sending the backup");
  const sent = await send(store, last, key, source, plan);
  if (plan.readBack) {
    onStage("reading the backup back");
    try {
      await prove(plan, store, key, sent);
    } catch (error) {
      await last.remove(key).catch(() => {});
      throw error;
    }
  }
  onStage("deleting older backups");
  const { deleted, undeleted } = await retire(plan, store, hostId, name);
  return { name, ...sent, is_read_back: plan.readBack, deleted, undeleted };
}

/** Aborts uploads of killed processes: their parts would otherwise cost money until they are found. */
async function abandonLeft(plan: S3Plan, store: ObjectStore, hostId: string): Promise<void> {
  for (const { key, upload_id } of await store.unfinished(plan.prefix)) {
    const isOwn = readName(nameIn(plan, key) ?? "")?.host_id === hostId || key.startsWith(daysPrefix(plan, hostId));
    if (isOwn) await store.abandon(key, upload_id);
  }
}

interface UploadedObject {
  bytes: number;
  size_bytes: number;
  sha256: string;
}

/** The source is not the content that was to be sent. */
export class OtherContent extends Error {
  override name = "OtherContent";
}

/**
 * Sends a stream as the object of this key. `last` is used after the signal was aborted. Throws OtherContent, and leaves no object, if the hash of
 * the source is not the `expected` one.
 */
export async function send(
  store: ObjectStore,
  last: ObjectStore,
  key: string,
  source: AsyncIterable<Uint8Array>,
  { passphrase, expected }: { passphrase: string; expected?: string },
): Promise<UploadedObject> {
  const digest = createHash("sha256");
  let bytes = 0;
  const measured = async function* () {
    for await (const chunk of source) {
      bytes += chunk.length;
      digest.update(chunk);
      yield chunk;
    }
  };
  const upload_id = await store.begin(key);
  try {
    const etags: string[] = [];
    let size_bytes = 0;
    for await (const part of piecesOf(sealed(measured(), passphrase), partBytes)) {
      size_bytes += part.bytes.length;
      etags.push(await store.putPart(key, upload_id, etags.length + 1, part.bytes));
    }
    const sha256 = digest.digest("hex");
    // An object exists once its upload is complete, whatever becomes of this process.
    if (expected !== undefined && sha256 !== expected) throw new OtherContent(`the source of ${key} has changed`);
    await store.complete(key, upload_id, etags);
    return { bytes, size_bytes, sha256 };
  } catch (error) {
    await last.abandon(key, upload_id).catch(() => {});
    throw error;
  }
}

/**
 * Size of a part. An upload has at most 10,000 parts and a backup's size is not known in advance, so later parts are larger: 2 TiB in
 * total.
 */
export function partBytes(number: number): number {
  return (number < 1000 ? 16 : number < 2000 ? 64 : 256) * MIB;
}

/** Reads an object back and compares it. Throws BrokenBackup. */
export async function prove(
  plan: S3Plan,
  store: ObjectStore,
  key: string,
  sent: Pick<UploadedObject, "sha256">,
): Promise<void> {
  const digest = createHash("sha256");
  for await (const chunk of opened(store.read(key), plan.passphrase)) digest.update(chunk);
  if (digest.digest("hex") !== sent.sha256) throw new BrokenBackup("the stored object differs from the uploaded one");
}

/** Deletes old backups; the newest is uploaded and counts. */
async function retire(
  plan: S3Plan,
  store: ObjectStore,
  hostId: string,
  newest: string,
): Promise<Pick<Uploaded, "deleted" | "undeleted">> {
  const deleted: string[] = [];
  if (plan.keep === 0) return { deleted, undeleted: null };
  try {
    const own = (await listStored(plan, store)).filter((each) => each.host_id === hostId && each.name !== newest);
    for (const { name } of own.slice(plan.keep - 1)) {
      await store.remove(keyOf(plan, name));
      deleted.push(name);
    }
    return { deleted, undeleted: null };
  } catch (error) {
    // The backup exists anyway.
    return { deleted, undeleted: error instanceof Error ? error.message : String(error) };
  }
}

export interface ListedBackup extends Stored {
  host_id: string;
  made_at: string;
}

/**
 * All below the prefix, of every host; the newest first. Throws StoreError. A name has the time of its host, with a clock that may have
 * been ahead: no backup is newer than its object. An object may be newer than its backup, if the bucket was copied.
 */
export async function listStored(plan: S3Plan, store = new ObjectStore(plan)): Promise<ListedBackup[]> {
  const found = (await store.list(plan.prefix)).flatMap(({ key, size_bytes, storedMs }) => {
    const name = nameIn(plan, key) ?? "";
    const named = readName(name);
    if (!named) return [];
    const madeMs = Date.parse(named.made_at);
    return [{ backup: { name, size_bytes, ...named }, madeMs: Math.min(storedMs, madeMs) }];
  });
  return found
    .sort((a, b) => b.madeMs - a.madeMs || b.backup.name.localeCompare(a.backup.name))
    .map(({ backup }) => backup);
}

/** The content of a backup, each piece after it was authenticated. Throws StoreError, WrongPassphrase, BrokenBackup. */
export function download(plan: S3Plan, { bucket, key }: { bucket: string; key: string }): AsyncGenerator<Uint8Array> {
  return opened(new ObjectStore({ ...plan, bucket }).read(key), plan.passphrase);
}

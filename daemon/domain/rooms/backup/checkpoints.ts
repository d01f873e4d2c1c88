/**
 * The checkpoints in a room's backup file: drive and database state of each, without its sandboxes. A checkpoint from outside is made again
 * rather than copied: its drive is created temporarily, within a drive's limits, and stored again as a checkpoint stores one; its state
 * consists of the parts that the nouns accept.
 */
import { link, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { DEFAULT_CHECKPOINT_SECONDS, MAX_CHECKPOINTS } from "../../../../shared/api/checkpoints.ts";
import { MAX_SNAPSHOT_SECONDS } from "../../../../shared/api/snapshots.ts";
import { newId } from "../../../../shared/ids.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { after, now } from "../../../core/clock.ts";
import { wholly } from "../../../core/loop/index.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { namesIn } from "../../../host/files/gone.ts";
import { contentIn, entriesIn, makeStoreDirectories, shardsIn } from "../../../host/files/store-places.ts";
import { markDrive } from "../../../host/isolation/directories.ts";
import { copying } from "../checkpoints/copying.ts";
import { readState, rowsIn, writeState } from "../checkpoints/room-state.ts";
import { listCheckpoints } from "../checkpoints/store.ts";
import type { CheckpointRow } from "../checkpoints/table.ts";
import type { RoomDeps } from "../deps.ts";
import type { Artifact } from "../move/artifacts.ts";
import type { RoomRow } from "../table.ts";
import type { Allowance } from "./allowance.ts";
import type { RoomFile } from "./files.ts";
import { requireStateFits, type SavedCheckpoint } from "./format.ts";
import { readForeignState } from "./state.ts";
import { restoreUntrustedDrive } from "./untrusted-drive.ts";

const placeIn = ({ place }: RoomFile, checkpointId: string) => {
  const directory = join(place.checkpoints, checkpointId);
  return { directory, store: join(directory, "drive"), state: join(directory, "state.ndjson") };
};

/**
 * Creates hard links to their drives' files in the backup's directory, so that they exist as long as needed. The checkpoints must not be
 * deleted during this.
 */
export async function keepCheckpoints(
  { database, paths }: Pick<RoomDeps, "database" | "paths">,
  { room_uid }: Pick<RoomRow, "room_uid">,
  file: RoomFile,
  { made_at, over }: { made_at: string; over: AbortSignal },
): Promise<SavedCheckpoint[]> {
  const rows = listCheckpoints(database.queries, { room_uid, after: null, limit: MAX_CHECKPOINTS });
  for (const { checkpoint_id } of rows) {
    const [from, to] = [paths.checkpoint(room_uid, checkpoint_id), placeIn(file, checkpoint_id)];
    await makeStoreDirectories(to.store);
    // Without the stored calls of its guests, which cannot be made from there.
    await file.alone(async () => {
      over.throwIfAborted();
      const { nouns } = await readState(from.state);
      const bytes = await writeState(to.state, { nouns }, 1);
      requireStateFits({ bytes, rows: rowsIn(nouns) });
    });
    await link(entriesIn(from.drive), entriesIn(to.store));
    for (const shard of shardsIn(from.drive)) {
      over.throwIfAborted();
      for (const name of await readdir(shard)) await link(join(shard, name), contentIn(to.store, Number(name)));
    }
  }
  return rows.map(({ checkpoint_id, name, cut_at, drive_bytes, expires_at }) => ({
    ...{ checkpoint_id, name, cut_at, drive_bytes, expires_in_seconds: lifeOf(expires_at, made_at) },
  }));
}

function lifeOf(expires_at: string | null, made_at: string): number {
  if (expires_at === null) return DEFAULT_CHECKPOINT_SECONDS;
  const left = Math.ceil((Date.parse(expires_at) - Date.parse(made_at)) / 1000);
  return Math.min(MAX_SNAPSHOT_SECONDS, Math.max(1, left));
}

/** Their stored files, as entries of the room's backup file. */
export async function* filesOfCheckpoints(file: RoomFile): AsyncGenerator<Artifact> {
  for (const id of await namesIn(file.place.checkpoints)) {
    const { store, state } = placeIn(file, id);
    yield belonging(`checkpoints/${id}/state.ndjson`, state);
    yield belonging(`checkpoints/${id}/drive/entries.ndjson`, entriesIn(store));
    for (const shard of shardsIn(store)) {
      const inside = `checkpoints/${id}/drive${shard.slice(store.length)}`;
      for (const name of await readdir(shard)) yield belonging(`${inside}/${name}`, join(shard, name));
    }
  }
}

const belonging = (place: string, path: string): Artifact => ({ place, path, bytes: 0, to: null, digest: null });

/**
 * Makes a checkpoint from its files; the caller inserts its row with the room's. Throws NotWhole, drive_full, disk_full, quota_exceeded.
 */
export async function bringCheckpoint(
  deps: RoomDeps,
  call: KeyCall,
  { room_uid, org_id }: RoomRow,
  file: RoomFile,
  { said, allowance }: { said: SavedCheckpoint; allowance: Allowance },
): Promise<CheckpointRow> {
  const { paths, branch, database, giveUpSpace } = deps;
  const given = placeIn(file, said.checkpoint_id);
  const checkpoint_id = newId("chk");
  const to = paths.checkpoint(room_uid, checkpoint_id);
  await mkdir(to.directory, { recursive: true, mode: 0o700 });
  const state_bytes = await file.alone(async () => {
    call.signal.throwIfAborted();
    const origin = { takenAtMs: Date.parse(said.cut_at), org_id: null };
    const nouns = await readForeignState(given.state, branch.nouns, origin);
    return await writeState(to.state, { nouns, calls: wholly(branch.calls.take(database.queries, [])) });
  });
  const drive_bytes = await keepAgain(deps, room_uid, file, { store: given.store, to: to.drive, allowance, call });
  await eraseDirectory(given.directory, giveUpSpace);
  for (const made of [to.directory, paths.checkpoints(room_uid)]) await syncDirectory(made);
  const created_at = now();
  return {
    ...{ checkpoint_id, room_uid, org_id, name: said.name, sandboxes: [], drive_bytes, state_bytes, paused_ms: 0 },
    ...{ cut_at: said.cut_at, created_at, expires_at: after(created_at, said.expires_in_seconds) },
    ...{ created_by_type: "key", created_by_id: call.caller.key_id },
  };
}

async function keepAgain(
  deps: RoomDeps,
  roomUid: RoomRow["room_uid"],
  { place }: RoomFile,
  { store, to, allowance, call }: { store: string; to: string; allowance: Allowance; call: KeyCall },
): Promise<number> {
  const { directory, drive, links } = place.scratch;
  await eraseDirectory(directory, deps.giveUpSpace);
  await mkdir(drive, { recursive: true, mode: 0o700 });
  const root = deps.driveRoot(roomUid);
  await markDrive(drive, root);
  await allowance.within((bounds) => restoreUntrustedDrive(call.signal, { store, drive, links, root, bounds }));
  // The restored drive and its copy exist at the same time for a moment.
  const bytes = await allowance.within((bounds) =>
    copying(call.signal, async (copier) => {
      await copier.copy(drive, to, bounds);
      const copied = await copier.complete();
      await copier.sync();
      return copied.bytes;
    }),
  );
  await eraseDirectory(directory, deps.giveUpSpace);
  await allowance.take(bytes);
  return bytes;
}

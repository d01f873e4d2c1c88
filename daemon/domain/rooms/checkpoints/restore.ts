/**
 * Turns a room back to a checkpoint of its own:
 *
 *   the drive of then is made beside the room's ⇒ the row says what is done
 *   → all sandboxes end ⇒ one commit: what the database had → the drives change places
 *   → the sandboxes go on as they were → who waits looks again ⇒ the row says that it is done
 *
 * The checkpoint itself is all that this needs: a daemon that finds it half done does it again from the beginning.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import { newId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import type { KeyCall } from "../../../core/operation.ts";
import { requireActive } from "../../../core/room-target.ts";
import { describeError } from "../../../core/service-error.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { DriveCopier } from "../../../host/files/drive-copier.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { exchangeNames } from "../../../host/files/libc.ts";
import { driveRootOf } from "../../../host/isolation/directories.ts";
import type { ForkedItem } from "../../sandboxes/index.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import { getRoom, updateRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import { giveState, readState, wakeNouns } from "./nouns.ts";
import type { CheckpointRow } from "./table.ts";

export interface Restored {
  room: RoomRecord;
  items: ForkedItem[];
}

/** Throws invalid_state, disk_full, quota_exceeded, room_destroying. */
export async function restoreRoom(
  { deps, records }: { deps: RoomDeps; records: RoomRecords },
  call: KeyCall,
  row: RoomRow,
  checkpoint: CheckpointRow,
  over: AbortSignal,
): Promise<Restored> {
  const { database, paths, branch } = deps;
  const { room_uid, org_id } = row;
  const { checkpoint_id, sandboxes } = checkpoint;
  const place = paths.checkpoint(room_uid, checkpoint_id);
  const state = await readState(place.state);
  await makeDrive(deps, place.drive, row, over);
  await database.commit((queries) => {
    over.throwIfAborted();
    requireActive(toTarget(getRoom(queries, room_uid) ?? { ...row, state: "destroyed" }, paths));
    updateRoom(queries, room_uid, { branching: { kind: "restore", checkpoint_id, key_id: call.caller.key_id } });
  });
  await faultPoint("restore.noted");
  const present = new Set<string>(branch.sandboxes.guests(room_uid));
  const as = new Map(
    sandboxes.map(({ sandbox_id }) => [sandbox_id as string, present.has(sandbox_id) ? sandbox_id : newId("sbx")]),
  );
  const room = { room_uid, org_id, pausedMs: Math.max(0, Date.now() - Date.parse(checkpoint.cut_at)) };
  const giveBack = async () => {
    await faultPoint("restore.ended");
    await deps.drive.holding(room_uid, async () => {
      over.throwIfAborted();
      await database.commit((queries) => {
        const parts = { nouns: branch.nouns, calls: branch.calls() };
        giveState(queries, parts, state, room, { how: "replace", sandboxIds: as, pathOf: (path) => path });
      });
      await faultPoint("restore.given");
      exchangeNames(paths.turned_drive(room_uid), paths.drive(room_uid));
      await syncDirectory(paths.room(room_uid));
      await faultPoint("restore.turned");
    });
  };
  let items: ForkedItem[];
  try {
    items = await branch.sandboxes.turnBack(call, toTarget(row, paths), sandboxes, as, giveBack);
  } catch (error) {
    await database.commit((queries) => updateRoom(queries, room_uid, { branching: null }));
    throw over.aborted ? over.reason : error;
  }
  await wakeNouns(branch.nouns, room);
  const whole = await database.commit((queries) => {
    updateRoom(queries, room_uid, { branching: null, updated_at: now() });
    return getRoom(queries, room_uid) ?? row;
  });
  removeTurned(deps, room_uid).catch((error: unknown) =>
    deps.log.warn("the former drive was not erased", { room_uid, error: describeError(error) }),
  );
  return { room: await records.of(whole), items };
}

/** The drive that was before a room was turned back, or was to be after it. */
export async function removeTurned(deps: RoomDeps, roomUid: RoomRow["room_uid"]): Promise<void> {
  const turned = deps.paths.turned_drive(roomUid);
  if (!existsSync(turned)) return;
  deps.driveQuota.end(turned);
  await eraseDirectory(turned, deps.giveUpSpace);
}

async function makeDrive(deps: RoomDeps, store: string, row: RoomRow, over: AbortSignal): Promise<void> {
  const { room_uid, drive_limit_bytes } = row;
  const turned = deps.paths.turned_drive(room_uid);
  await removeTurned(deps, room_uid);
  await using copier = new DriveCopier();
  const giveUp = () => copier.giveUp();
  over.addEventListener("abort", giveUp, { once: true });
  try {
    over.throwIfAborted();
    await mkdir(turned, { mode: 0o700 });
    deps.driveQuota.begin(turned, `${room_uid} ${Date.now()}`, {
      bytes: drive_limit_bytes,
      inodes: deps.driveLimitEntries,
    });
    await copier.restore(store, turned, driveRootOf(turned));
  } catch (error) {
    await copier[Symbol.asyncDispose]();
    await removeTurned(deps, room_uid);
    throw over.aborted ? over.reason : error;
  } finally {
    over.removeEventListener("abort", giveUp);
  }
}

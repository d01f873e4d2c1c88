/**
 * Restores a room to one of its own checkpoints:
 *
 *     the checkpoint's drive is created beside the room's, its rows under another key
 *     ⇒ the row records the restore: changes are refused from here on
 *     → all sandboxes are ended, and become hibernated ones with the checkpoint's state → the drives are exchanged
 *     ⇒ one commit: the keys of the rows are exchanged, and everything is in place
 *     → its sandboxes run (start.ts), its former rows are removed
 *
 * This needs nothing but the checkpoint itself. If it fails before the row records it, nothing has changed; after that it can only be
 * completed: a daemon that finds it unfinished retries until it succeeds.
 */
import { mkdir } from "node:fs/promises";
import type { SandboxId } from "../../../../shared/ids.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { requireLive } from "../../../core/call/room-target.ts";
import { now, wallMs } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError } from "../../../core/service-error.ts";
import type { BranchedRoom } from "../../../db/branch.ts";
import { newRows, rowsOf } from "../../../db/room-rows.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { exchangeNames } from "../../../host/files/libc.ts";
import { driveRootOf } from "../../../host/isolation/directories.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import { getRoom, updateRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import { copying } from "./copying.ts";
import { retire } from "./retired.ts";
import { dropNouns, giveNouns, type RoomState, readState, stageNouns } from "./room-state.ts";
import { type Started, starting, startRoom } from "./start.ts";
import type { CheckpointRow } from "./table.ts";

interface CheckpointRestoreParts {
  deps: RoomDeps;
  records: RoomRecords;
}

/** Throws invalid_state, snapshot_incompatible, guest_unreachable, disk_full, quota_exceeded, room_destroying. */
export async function restoreRoom(
  parts: CheckpointRestoreParts,
  call: KeyCall,
  row: RoomRow,
  checkpoint: CheckpointRow,
  over: AbortSignal,
): Promise<Started> {
  const { deps } = parts;
  const { room_uid } = row;
  await makeDrive(deps, row, checkpoint, over);
  try {
    const as = await withRows(deps, row, checkpoint, over, (state, room) =>
      turnBack(deps, call, row, { checkpoint, state, room }, over),
    );
    return await startRoom(parts, call, row, checkpoint, as);
  } finally {
    await retire(deps, room_uid);
  }
}

/** Stages the checkpoint's rows for `work`, and removes the rows that the room has not got, or no more. */
async function withRows<T>(
  { database, paths, branch, log }: RoomDeps,
  { room_uid, org_id }: RoomRow,
  { checkpoint_id, cut_at }: CheckpointRow,
  over: AbortSignal,
  work: (state: RoomState, room: BranchedRoom) => Promise<T>,
): Promise<T> {
  const { queries } = database;
  const state = await readState(paths.checkpoint(room_uid, checkpoint_id).state);
  const pausedMs = Math.max(0, wallMs() - Date.parse(cut_at));
  const room = { room_uid, org_id, pausedMs, rows: newRows(room_uid) };
  // A restore that has started can only be completed, even if space was used elsewhere since.
  const requiresSpace = !getRoom(queries, room_uid)?.branching;
  const former = rowsOf(queries, room_uid);
  await stageNouns(branch.nouns, state.nouns, room, { over, isOther: false, requiresSpace });
  await faultPoint("restore.rows");
  try {
    return await work(state, room);
  } finally {
    const unused = rowsOf(queries, room_uid) === room.rows ? former : room.rows;
    // No caller waits for it; the next start removes leftovers.
    dropNouns(branch.nouns, unused).catch((error: unknown) =>
      log.error("failed to remove rows that no room has", { room_uid, error: describeError(error) }),
    );
  }
}

interface Restored {
  checkpoint: CheckpointRow;
  state: RoomState;
  room: BranchedRoom;
}

/** Returns the ids by which the checkpoint's sandboxes are known now. */
async function turnBack(
  deps: RoomDeps,
  call: KeyCall,
  row: RoomRow,
  { checkpoint, state, room }: Restored,
  over: AbortSignal,
): Promise<ReadonlyMap<string, SandboxId>> {
  const { database, paths, branch } = deps;
  const { room_uid } = row;
  const { checkpoint_id, sandboxes } = checkpoint;
  let ids: ReadonlyMap<string, SandboxId> = new Map();
  const begin = async () => {
    await database.commit((queries) => {
      over.throwIfAborted();
      const known = getRoom(queries, room_uid);
      requireLive(toTarget(known ?? { ...row, state: "destroyed" }, paths));
      updateRoom(queries, room_uid, { branching: { kind: "restore", checkpoint_id, key_id: call.caller.key_id } });
      call.work.note({ restored: checkpoint_id });
    });
    await faultPoint("restore.noted");
  };
  const whileEnded = async (as: ReadonlyMap<string, SandboxId>) => {
    await faultPoint("restore.ended");
    over.throwIfAborted();
    exchangeNames(paths.turned_drive(room_uid), paths.drive(room_uid));
    await syncDirectory(paths.room(room_uid));
    await faultPoint("restore.turned");
    await branch.calls.replace(state.calls, { ...room, sandboxIds: as, pathOf: (path) => path }, true);
    await database.commit((queries) => {
      giveNouns(queries, branch.nouns, state.nouns, room);
      updateRoom(queries, room_uid, { branching: starting(checkpoint, call, as), updated_at: now() });
    });
    await faultPoint("restore.given");
    ids = as;
  };
  // Blocks the drive first, before a sandbox ends: a call in progress that changes the drive may take long.
  await deps.drive.holding(room_uid, () =>
    branch.sandboxes.turnBack(call, toTarget(row, paths), { sandboxes, begin, whileEnded }),
  );
  return ids;
}

async function makeDrive(
  deps: RoomDeps,
  row: RoomRow,
  { checkpoint_id, drive_bytes }: CheckpointRow,
  over: AbortSignal,
): Promise<void> {
  const { paths, driveQuota, branch } = deps;
  const { room_uid, org_id, drive_limit_bytes } = row;
  const turned = paths.turned_drive(room_uid);
  await retire(deps, room_uid);
  const { used_bytes } = await deps.drive.measure(toTarget(row, paths));
  await branch.sandboxes.requireBytes({ org_id }, { added: drive_bytes, freed: used_bytes });
  try {
    await mkdir(turned, { mode: 0o700 });
    driveQuota.begin(turned, `${room_uid} ${wallMs()}`, {
      bytes: Math.max(drive_limit_bytes, drive_bytes),
      inodes: deps.driveLimitEntries,
    });
    await copying(over, (copier) =>
      copier.restore({
        ...{ store: paths.checkpoint(room_uid, checkpoint_id).drive, drive: turned },
        ...{ links: paths.drive_links(room_uid), root: driveRootOf(turned) },
      }),
    );
  } catch (error) {
    await retire(deps, room_uid);
    throw error;
  }
}

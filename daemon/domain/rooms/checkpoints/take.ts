/**
 * Takes a checkpoint of a room:
 *
 *     the drive is copied while guests and calls run
 *     all sandboxes are paused, their memory is saved
 *       └ no call changes the drive: the database state of one moment is read, the copy of the drive is brought up to date
 *     all sandboxes resume ⇒ the database state is written to a file ⇒ one commit inserts snapshots and checkpoint
 *
 * Before that commit no row refers to it, and its files on disk are swept after a crash.
 */
import { mkdir } from "node:fs/promises";
import {
  type checkpointCreate,
  DEFAULT_CHECKPOINT_SECONDS,
  MAX_CHECKPOINTS,
} from "../../../../shared/api/checkpoints.ts";
import type { InputOf } from "../../../../shared/api/contract.ts";
import { type CheckpointId, newId } from "../../../../shared/ids.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { type RoomTarget, requireActive } from "../../../core/call/room-target.ts";
import { after, now } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import type { RoomDeps } from "../deps.ts";
import { getRoom } from "../store.ts";
import { toTarget } from "../target.ts";
import { copying } from "./copying.ts";
import { takeState, taking, writeState } from "./room-state.ts";
import { checkpointBytes, countCheckpoints, findCheckpoint, insertCheckpoint } from "./store.ts";
import type { CheckpointRow } from "./table.ts";

/** By how much guests may exceed the drive's limits before they are stopped. */
const BEYOND = { bytes: 64 * 1024 ** 2, entries: 10_000 };

export type Taking = Pick<InputOf<typeof checkpointCreate>, "name" | "expires_in_seconds">;

/** Idempotent: a retry of the call finds the same checkpoint. Throws the errors of a snapshot. */
export async function takeCheckpoint(
  deps: RoomDeps,
  call: KeyCall,
  room: RoomTarget,
  over: AbortSignal,
  { name, expires_in_seconds = DEFAULT_CHECKPOINT_SECONDS }: Taking,
): Promise<CheckpointRow> {
  const { database, paths, branch } = deps;
  const { room_uid } = room;
  const checkpoint_id: CheckpointId = newId("chk", call.work.ulid);
  const known = findCheckpoint(database.queries, room_uid, checkpoint_id);
  if (known) return known;
  requireCount(countCheckpoints(database.queries, room_uid));
  const { used_bytes } = await deps.drive.measure(room);
  const used = await branch.sandboxes.requireSpace(room, used_bytes);
  const others = checkpointBytes(database.queries, room.org_id);
  const created_at = now();
  const place = paths.checkpoint(room_uid, checkpoint_id);
  const { drive_directory, drive_limit_bytes } = room;
  try {
    // An earlier attempt of the same call may have left files.
    await eraseDirectory(place.directory, deps.giveUpSpace);
    await mkdir(place.directory, { recursive: true, mode: 0o700 });
    return await copying(over, async (copier) => {
      await copier.copy(drive_directory, place.drive, {
        bytes: drive_limit_bytes + BEYOND.bytes,
        entries: deps.driveLimitEntries + BEYOND.entries,
      });
      await faultPoint("checkpoint.copied");
      over.throwIfAborted();
      return await branch.sandboxes.cut(call, room, {
        ...{ checkpoint_id, created_at, name: name ?? null },
        whileStill: () =>
          deps.drive.holding(room_uid, async () => {
            over.throwIfAborted();
            const cut_at = now();
            const parts = { nouns: branch.nouns, calls: branch.calls };
            const sandboxIds = branch.sandboxes.guests(room_uid);
            const take = (queries: Queries) => takeState(queries, parts, room_uid, sandboxIds);
            const state = await taking(database, room.org_id, take);
            const { bytes: drive_bytes } = await copier.complete();
            await faultPoint("checkpoint.cut");
            return { cut_at, state, drive_bytes };
          }),
        keep: async ({ sandboxes, snapshots, paused_ms, still: { cut_at, state, drive_bytes } }) => {
          await copier.sync();
          const state_bytes = await writeState(place.state, state);
          for (const made of [place.directory, paths.checkpoints(room_uid), paths.room(room_uid)])
            await syncDirectory(made);
          await faultPoint("checkpoint.whole");
          const row: CheckpointRow = {
            ...{ checkpoint_id, room_uid, org_id: room.org_id, name: name ?? null },
            ...{ sandboxes, drive_bytes, state_bytes, paused_ms },
            ...{ cut_at, created_at, expires_at: after(created_at, expires_in_seconds) },
            ...{ created_by_type: "key", created_by_id: call.caller.key_id },
          };
          await database.commit((queries) => {
            const present = getRoom(queries, room_uid);
            requireActive(present ? toTarget(present, paths) : { ...room, state: "destroyed" });
            requireCount(countCheckpoints(queries, room_uid));
            // Counts checkpoints taken in the meantime.
            const more = Math.max(0, checkpointBytes(queries, room.org_id) - others);
            branch.sandboxes.keep(queries, room, used, snapshots, drive_bytes + state_bytes + more);
            insertCheckpoint(queries, row);
          });
          return row;
        },
      });
    });
  } catch (error) {
    await eraseDirectory(place.directory, deps.giveUpSpace);
    throw error;
  }
}

function requireCount(held: number): void {
  if (held < MAX_CHECKPOINTS) return;
  throw new ServiceError("quota_exceeded", {
    detail: `The room has ${held} checkpoints, which is the maximum.`,
    details: { limit: "checkpoints", used: held, cap: MAX_CHECKPOINTS },
    hint: "Delete one first (roomd room checkpoints).",
  });
}

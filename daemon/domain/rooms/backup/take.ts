/**
 * Makes a room's backup file:
 *
 *     the drive is copied while guests and calls run
 *     → the drive is quiesced (neither calls nor guests change it): the database state is read in one commit,
 *       and the copy is brought up to date
 *     → the drive is released → the file is streamed as the client reads it
 *
 * The room keeps no trace of it afterwards, and a client that does not read for a while is disconnected.
 */
import { MAX_CHECKPOINTS } from "../../../../shared/api/checkpoints.ts";
import type { RoomTarget } from "../../../core/call/room-target.ts";
import { monotonicMs, now, startTimer, stopTimer } from "../../../core/clock.ts";
import { within } from "../../../core/concurrency/published.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { namesIn } from "../../../host/files/gone.ts";
import { copying } from "../checkpoints/copying.ts";
import { rowsIn, takeNouns, taking, writeState } from "../checkpoints/room-state.ts";
import { listCheckpoints } from "../checkpoints/store.ts";
import type { RoomDeps } from "../deps.ts";
import { packed } from "../move/pack.ts";
import { CLIENTS, leftMs, type MoveTimeouts } from "../move/timeouts.ts";
import type { RoomRow } from "../table.ts";
import { filesOfCheckpoints, keepCheckpoints } from "./checkpoints.ts";
import type { RoomFile } from "./files.ts";
import { type BackedUp, BEYOND, opening, requireStateFits } from "./format.ts";

/** Guests that wait longer for their drive may report it as broken. */
const MAX_STILL_MS = 60_000;

/** Packs the room into the file's directory. Throws quota_exceeded, drive_full, disk_full, invalid_state. */
export async function packRoom(
  deps: RoomDeps,
  row: RoomRow,
  room: RoomTarget,
  file: RoomFile,
  over: AbortSignal,
): Promise<BackedUp> {
  const { place } = file;
  const { database, branch, drive } = deps;
  const { used_bytes } = await drive.measure(room);
  await branch.sandboxes.requireBytes(row, { added: used_bytes, freed: used_bytes });
  return await copying(over, async (copier) => {
    await copier.copy(room.drive_directory, place.store, {
      bytes: row.drive_limit_bytes + BEYOND.bytes,
      entries: deps.driveLimitEntries + BEYOND.entries,
    });
    await faultPoint("backup.copied");
    const { nouns, made_at, drive_bytes } = await drive.still(row.room_uid, async () => {
      over.throwIfAborted();
      const made_at = now();
      const nouns = await taking(database, row.org_id, (queries) => takeNouns(queries, branch.nouns, row.room_uid));
      const { bytes } = await within(copier.complete(), MAX_STILL_MS, "copying the changes of the drive");
      return { nouns, made_at, drive_bytes: bytes };
    });
    const bytes = await writeState(place.state, { nouns }, 1);
    requireStateFits({ bytes, rows: rowsIn(nouns) });
    await faultPoint("backup.packed");
    const left_out = await leftOutOf(deps, row);
    const checkpoints = await keepCheckpoints(deps, row, file, { made_at, over });
    const { room_id, labels } = row;
    return { room_id, labels, ttl_seconds: lifeOf(row), made_at, drive_bytes, checkpoints, left_out };
  });
}

async function leftOutOf({ database, paths, branch }: RoomDeps, { room_uid }: RoomRow): Promise<BackedUp["left_out"]> {
  const checkpoints = listCheckpoints(database.queries, { room_uid, after: null, limit: MAX_CHECKPOINTS });
  return {
    sandboxes: branch.sandboxes.guests(room_uid).length,
    snapshots: (await namesIn(paths.snapshots(room_uid))).length,
    checkpoints: checkpoints.filter(({ sandboxes }) => sandboxes.length > 0).length,
    recordings: (await namesIn(paths.recordings(room_uid))).filter((name) => name.endsWith(".json")).length,
  };
}

/** A room with a limited lifetime yields a room with the same lifetime. */
function lifeOf({ created_at, expires_at }: RoomRow): number | null {
  if (expires_at === null) return null;
  return Math.max(1, Math.round((Date.parse(expires_at) - Date.parse(created_at)) / 1000));
}

/**
 * Streams the packed file as it is read. Its directory is removed after the last byte, when the reader cancels, or if it reads too slowly
 * or not at all.
 */
export function streamOf(
  file: RoomFile,
  about: BackedUp,
  patience: MoveTimeouts = CLIENTS,
): ReadableStream<Uint8Array> {
  const pieces = packed(file.place, opening(about), filesOfCheckpoints(file));
  const since = monotonicMs();
  let sent = 0;
  let waiting: Timer | undefined;
  const end = async () => {
    stopTimer(waiting);
    try {
      await pieces.return(undefined);
    } finally {
      await file.remove();
    }
  };
  const wait = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    waiting = startTimer(
      () => {
        controller.error(new Error("the client did not read the room file, or read it too slowly"));
        void end().catch(() => {});
      },
      leftMs(patience, since, sent),
    );
  };
  return new ReadableStream<Uint8Array>(
    {
      // The client may never read the body.
      start: wait,
      pull: async (controller) => {
        stopTimer(waiting);
        try {
          const { done, value } = await pieces.next();
          if (done) {
            await end();
            return controller.close();
          }
          sent += value.length;
          controller.enqueue(value);
          wait(controller);
        } catch (error) {
          await end().catch(() => {});
          throw error;
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}

/**
 * The end of a room, in this order: its row gets `destroying`, and whether its drive is kept → waiting calls are answered → guests are
 * destroyed → the drive is retired or erased, messages and barriers are removed → its row gets `destroyed`, and until when the drive is
 * kept.
 *
 * An end that a crash interrupts is resumed at the next start. A request to delete the drive is accepted until the row has `destroyed`.
 */
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { roomDestroy } from "../../../shared/api/rooms.ts";
import { type Bound, bind, type Caller } from "../../core/call/operation.ts";
import { after, monotonicMs, now } from "../../core/clock.ts";
import { DeadlineError, within } from "../../core/concurrency/published.ts";
import { faultPoint } from "../../core/fault-points.ts";
import type { Queries } from "../../db/client.ts";
import { onFullDisk } from "../../host/files/disk.ts";
import type { Checkpoints } from "./checkpoints/index.ts";
import type { RoomDeps } from "./deps.ts";
import type { Eraser } from "./erase.ts";
import { getRoom, updateRoom } from "./store.ts";
import type { RoomRow } from "./table.ts";

/** Time after which the call returns while the room is still being destroyed. */
const ANSWER_AFTER_MS = 30_000;

export interface DestroyedRoom {
  agents: string[];
  drive_until_at: string | null;
}

export interface Destroyer {
  operation: Bound;
  /** Destroys a room; a repeated call joins the first. */
  end(row: RoomRow, keepDrive: boolean): Promise<DestroyedRoom>;
  isEnding(row: RoomRow): boolean;
}

interface Erasing {
  eraser: Pick<Eraser, "erase">;
  /** Removes the retained drive of a destroyed room. */
  eraseKept(row: RoomRow): Promise<void>;
  checkpoints: Pick<Checkpoints, "end" | "forget">;
}

/** `onEnded` is called with every room when its destruction has finished or failed. */
export function makeDestroy(
  deps: RoomDeps,
  findRow: (caller: Caller, roomId: string) => RoomRow,
  onEnded: (row: RoomRow) => void,
  erasing: Erasing,
): Destroyer {
  const ending = new Map<string, Promise<DestroyedRoom>>();

  const end = (row: RoomRow, keepDrive: boolean): Promise<DestroyedRoom> => {
    const known = ending.get(row.room_uid);
    if (known && keepDrive) return known;
    if (known) {
      return deps.database
        .commit((queries) => updateRoom(queries, row.room_uid, { keep_drive: false }))
        .then(() => known);
    }
    const work = destroy(deps, row, keepDrive && row.keep_drive, erasing).finally(() => {
      ending.delete(row.room_uid);
      onEnded(row);
    });
    ending.set(row.room_uid, work);
    return work;
  };

  const operation = bind(roomDestroy, {
    find: (call, params) => findRow(call.caller, String(params.room_id)),
    run: async (call, input, row) => {
      const startedAt = monotonicMs();
      call.audit.room_id = row.room_id;
      call.audit.room_uid = row.room_uid;
      const answer = (state: "destroying" | "destroyed", { agents, drive_until_at }: DestroyedRoom) => ({
        outcome: state,
        body: {
          room_id: row.room_id,
          room_uid: row.room_uid,
          state,
          sandboxes_destroyed: agents,
          drive: {
            state: drive_until_at === null ? ("deleted" as const) : ("retained" as const),
            until_at: drive_until_at,
          },
          duration_ms: Math.round(monotonicMs() - startedAt),
        },
      });
      const keep = input.drive !== "delete";
      try {
        const ended = await within(end(row, keep), ANSWER_AFTER_MS, "destroying the room");
        call.audit.details = { sandboxes_destroyed: ended.agents };
        return answer("destroyed", ended);
      } catch (error) {
        if (!(error instanceof DeadlineError)) throw error;
        return answer("destroying", { agents: [], drive_until_at: keep ? after(now(), deps.retentionSeconds) : null });
      }
    },
  });

  return { operation, end, isEnding: (row) => ending.has(row.room_uid) };
}

async function destroy(
  deps: RoomDeps,
  row: RoomRow,
  keepDrive: boolean,
  { eraser, eraseKept, checkpoints }: Erasing,
): Promise<DestroyedRoom> {
  const { database } = deps;
  const { room_uid } = row;
  const changed = () => ({ updated_at: now(), last_transition_at: now() });
  await database.commit((queries) =>
    updateRoom(queries, room_uid, {
      state: "destroying",
      status_reason: "destroying",
      status_message: "The room is being destroyed.",
      keep_drive: keepDrive,
      ...changed(),
    }),
  );
  deps.fabric.endWaits(row);
  const given = checkpoints.end(row);
  const agents = await deps.sandboxes.destroyAll(room_uid);
  await given;
  await faultPoint("room.emptied");
  // Read now: a caller may have requested its deletion in the meantime.
  const keeps = (queries: Queries) => getRoom(queries, room_uid)?.keep_drive === true && deps.retentionSeconds > 0;
  const kept = keeps(database.queries);
  if (kept) await retireDirectory(deps, room_uid);
  // A drive that is to be deleted frees its space before anything more is written.
  else await eraser.erase(row);
  await deps.fabric.forget(room_uid);
  await faultPoint("room.retired");
  const until = await database.commit((queries) => {
    const late = kept && !keeps(queries);
    const drive_until_at = kept ? after(now(), late ? 0 : deps.retentionSeconds) : null;
    updateRoom(queries, room_uid, {
      state: "destroyed",
      status_reason: "destroyed",
      status_message: "The room is destroyed.",
      drive_until_at,
      ...changed(),
    });
    checkpoints.forget(queries, room_uid);
    deps.meter.closes(queries, room_uid);
    return late ? "erase" : drive_until_at;
  });
  // The room's name is free for others once the cluster directory has released it; no caller waits for that.
  void deps.directory.release(room_uid);
  if (until !== "erase") return { agents, drive_until_at: until };
  await eraseKept(row);
  return { agents, drive_until_at: null };
}

/** Retires the drive, and deletes the room's other files. */
export async function retireDirectory({ paths, giveUpSpace }: RoomDeps, roomUid: RoomRow["room_uid"]): Promise<void> {
  const directory = paths.room(roomUid);
  if (!existsSync(directory)) return;
  await onFullDisk(giveUpSpace, async () => {
    // These would no longer be reachable or deletable through the API.
    for (const directory of [
      ...[paths.recordings(roomUid), paths.snapshots(roomUid), paths.checkpoints(roomUid)],
      ...[paths.turned_drive(roomUid), paths.former(roomUid), paths.drive_links(roomUid)],
    ]) {
      await rm(directory, { recursive: true, force: true });
    }
    await mkdir(paths.retired, { recursive: true, mode: 0o700 });
    await rename(directory, paths.retired_room(roomUid));
  });
}

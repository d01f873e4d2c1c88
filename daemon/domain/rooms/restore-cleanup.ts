/**
 * Settles rooms that a backup of the host has incompletely, because they were made or ended while it was taken: rooms that ended, or are
 * without their drive, are ended again, and drives without a room are erased.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { RoomUid } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { eraseDirectory } from "../../host/files/erase.ts";
import { getRoom, liveRooms, updateRoom } from "./store.ts";
import { isDriveKept } from "./target.ts";

/** A room that ended during a backup: its drive may be incomplete in the backup. */
export interface EndedRoom {
  room_uid: RoomUid;
  keep_drive: boolean;
}

/** Rooms of a database copy that have been destroyed since, or are being destroyed. */
export function roomsEndedSince(copy: Queries, present: Queries): EndedRoom[] {
  return liveRooms(copy).flatMap(({ room_uid, state, keep_drive }) => {
    const room = getRoom(present, room_uid);
    if (room?.state === state && room.keep_drive === keep_drive) return [];
    return { room_uid, keep_drive: room?.state === "destroying" ? room.keep_drive : !!room && isDriveKept(room) };
  });
}

/** Marks lost rooms as `destroying`, so that the daemon's next start completes their destruction. Returns their names. */
export async function settleRooms(
  database: Database,
  paths: Paths,
  endedRooms: readonly EndedRoom[],
): Promise<string[]> {
  for (const places of [paths.rooms, paths.retired]) {
    for (const name of existsSync(places) ? readdirSync(places) : []) {
      if (getRoom(database.queries, name as RoomUid)) continue;
      await eraseDirectory(join(places, name), () => false);
    }
  }
  const ended = new Map(endedRooms.map((room) => [room.room_uid, room]));
  const live = liveRooms(database.queries);
  const lost = live.filter(({ room_uid }) => ended.has(room_uid) || !existsSync(paths.drive(room_uid)));
  const isLost = new Set(lost.map(({ room_uid }) => room_uid));
  // A drive that was retired during the backup may have been copied at both locations; only one copy is kept.
  for (const { room_uid } of live) {
    const both = [paths.room(room_uid), paths.retired_room(room_uid)];
    const [, surplus] = isLost.has(room_uid) ? both.reverse() : both;
    if (surplus !== undefined && both.every((place) => existsSync(place))) await eraseDirectory(surplus, () => false);
  }
  await database.commit((queries) => {
    for (const { room_uid } of lost) {
      updateRoom(queries, room_uid, {
        state: "destroying",
        status_reason: "destroying",
        status_message: "The room was destroyed while its backup was being made.",
        keep_drive: ended.get(room_uid)?.keep_drive ?? existsSync(paths.retired_room(room_uid)),
        updated_at: now(),
        last_transition_at: now(),
      });
    }
  });
  return lost.map(({ room_id }) => room_id);
}

/**
 * Owns what becomes of rooms that a backup has by halves, because they came or went while it was made: those without their drive
 * are ended again, and drives without their room go.
 */
import { existsSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { RoomUid } from "../../shared/ids.ts";
import { now } from "../core/clock.ts";
import type { Paths } from "../core/paths.ts";
import type { Database } from "../db/transact.ts";
import { getRoom, liveRooms, updateRoom } from "./store.ts";

/** The daemon brings the rooms to their end at its next start. Returns their names. */
export async function settleRooms(database: Database, paths: Paths): Promise<string[]> {
  for (const places of [paths.rooms, paths.retired]) {
    for (const name of existsSync(places) ? readdirSync(places) : []) {
      if (getRoom(database.queries, name as RoomUid)) continue;
      await rm(join(places, name), { recursive: true });
    }
  }
  const lost = liveRooms(database.queries).filter(({ room_uid }) => !existsSync(paths.drive(room_uid)));
  await database.commit((queries) => {
    for (const { room_uid } of lost) {
      updateRoom(queries, room_uid, {
        state: "destroying",
        status_reason: "destroying",
        status_message: "The room was destroyed while the backup that it comes from was made.",
        keep_drive: existsSync(paths.retired_room(room_uid)),
        updated_at: now(),
        last_transition_at: now(),
      });
    }
  });
  return lost.map(({ room_id }) => room_id);
}

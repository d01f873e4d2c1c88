/** Owns what becomes of rooms that a backup has without their drive: they were ended while it was made, and are ended again. */
import { existsSync } from "node:fs";
import { now } from "../core/clock.ts";
import type { Paths } from "../core/paths.ts";
import type { Queries } from "../db/client.ts";
import { liveRooms, updateRoom } from "./store.ts";

/** The daemon brings them to their end at its next start. Returns their names. */
export function endRoomsWithoutDrive(queries: Queries, paths: Paths): string[] {
  const lost = liveRooms(queries).filter(({ room_uid }) => !existsSync(paths.drive(room_uid)));
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
  return lost.map(({ room_id }) => room_id);
}

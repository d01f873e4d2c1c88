/** Owns a room as other nouns see it. */
import type { Paths } from "../core/paths.ts";
import type { RoomTarget } from "../core/room-target.ts";
import type { RoomRow } from "./table.ts";

export function toTarget(row: RoomRow, paths: Paths): RoomTarget {
  return {
    room_id: row.room_id,
    room_uid: row.room_uid,
    org_id: row.org_id,
    state: row.state,
    drive_directory: paths.drive(row.room_uid),
    drive_limit_bytes: row.drive_limit_bytes,
  };
}

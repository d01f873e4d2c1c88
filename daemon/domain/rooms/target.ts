/** A room as other nouns see it, and the check of a caller's access to it. */

import type { Caller } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { RoomPlace } from "./store.ts";

/** Whether the room is destroyed, but its drive retained. */
export const isDriveKept = (row: Pick<RoomPlace, "state" | "drive_until_at">): boolean =>
  row.state === "destroyed" && row.drive_until_at !== null;

export function toTarget(row: RoomPlace, paths: Paths): RoomTarget {
  return {
    room_id: row.room_id,
    room_uid: row.room_uid,
    org_id: row.org_id,
    state: row.state,
    drive_directory: isDriveKept(row) ? paths.drive_in(paths.retired_room(row.room_uid)) : paths.drive(row.room_uid),
    drive_limit_bytes: row.drive_limit_bytes,
    is_turning: row.branching?.kind === "restore",
    is_moving: row.branching?.kind === "move",
  };
}

/** A key that is bound to rooms has access to no others. */
export function mayEnter(caller: Caller, roomId: string): boolean {
  return caller.room_ids === null || caller.room_ids.includes(roomId);
}

/** Finds the room of an overview call. */
import type { KeyCall } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import type { OverviewDeps } from "./deps.ts";

/** Throws room_not_found. */
export function findRoom(deps: OverviewDeps, call: KeyCall, params: Record<string, string>): RoomTarget {
  const room = deps.findRoom(call.caller, String(params.room_id));
  call.audit.room_id = room.room_id;
  call.audit.room_uid = room.room_uid;
  return room;
}

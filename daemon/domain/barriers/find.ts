/** Finds a barrier's room, and the name of the bell that wakes the calls that wait at it. */
import type { KeyCall } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import type { BarrierDeps } from "./deps.ts";

export const barrierBell = (barrierId: string) => `barrier ${barrierId}`;

/** Throws room_not_found. */
export function findRoom(deps: BarrierDeps, call: KeyCall, params: Record<string, string>): RoomTarget {
  const room = deps.findRoom(call.caller, String(params.room_id));
  call.audit.room_id = room.room_id;
  call.audit.room_uid = room.room_uid;
  return room;
}

/** Finds the room of an audit call. */
import type { Caller, KeyCall } from "../../core/call/operation.ts";

export interface AuditedRoom {
  room_id: string;
  room_uid: string;
}

/** Throws room_not_found. */
export function findRoom(
  deps: { findRoom(caller: Caller, roomId: string): AuditedRoom },
  call: KeyCall,
  params: Record<string, string>,
): AuditedRoom {
  const { room_id, room_uid } = deps.findRoom(call.caller, String(params.room_id));
  Object.assign(call.audit, { room_id, room_uid });
  return { room_id, room_uid };
}

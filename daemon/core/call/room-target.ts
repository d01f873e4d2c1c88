/** A room as other nouns know it: enough to work in it, independent of its storage. */
import type { RoomState } from "../../../shared/api/rooms.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import { ServiceError } from "../service-error.ts";
import type { Caller, KeyCall } from "./operation.ts";

export interface RoomTarget {
  room_id: string;
  room_uid: RoomUid;
  org_id: OrgId;
  state: RoomState;
  drive_directory: string;
  drive_limit_bytes: number;
  /** A restore to a checkpoint is in progress. */
  is_turning: boolean;
  /** It goes to another host. */
  is_moving: boolean;
}

/** Finds a room of the caller's organization. Throws room_not_found, also for another organization's room. */
export type FindRoom = (caller: Caller, roomId: string) => RoomTarget;

/** The room of a request path, which the call's audit record names. Throws room_not_found. */
export function findRoom<Room extends { room_id: string; room_uid: string }>(
  deps: { findRoom(caller: Caller, roomId: string): Room },
  call: KeyCall,
  params: Record<string, string>,
): Room {
  const room = deps.findRoom(call.caller, String(params.room_id));
  call.audit.room_id = room.room_id;
  call.audit.room_uid = room.room_uid;
  return room;
}

/** Throws room_moving: a room has no access while its next host is undecided. */
export function requireHere(room: Pick<RoomTarget, "room_id" | "is_moving">): void {
  if (!room.is_moving) return;
  throw new ServiceError("room_moving", { detail: `Room ${room.room_id} is moving to another host.` });
}

/** Throws room_destroying, and not_ready during a restore, which would discard the change. */
export function requireActive(room: Pick<RoomTarget, "room_id" | "state" | "is_turning">): void {
  requireLive(room);
  if (!room.is_turning) return;
  throw new ServiceError("not_ready", {
    detail: `Room ${room.room_id} is being restored to a checkpoint.`,
    hint: "Retry once the restore has finished.",
    retryAfterSeconds: 2,
  });
}

/** Throws room_destroying: a room that is being destroyed accepts no changes. */
export function requireLive(room: Pick<RoomTarget, "room_id" | "state">): void {
  if (room.state !== "active") {
    throw new ServiceError("room_destroying", { detail: `Room ${room.room_id} is being destroyed.` });
  }
}

/** The message of a request path. */
import type { KeyCall } from "../../core/call/operation.ts";
import { findRoom, type RoomTarget } from "../../core/call/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { FabricDeps } from "./deps.ts";
import { findMessage } from "./store.ts";
import type { MessageRow } from "./table.ts";

export interface MessageTarget {
  room: RoomTarget;
  row: MessageRow;
}

/** Throws room_not_found, message_not_found. */
export function findMessageTarget(deps: FabricDeps, call: KeyCall, params: Record<string, string>): MessageTarget {
  const room = findRoom(deps, call, params);
  return { room, row: requireMessage(deps, room, String(params.message_id)) };
}

/** Throws message_not_found. */
export function requireMessage(deps: FabricDeps, room: RoomTarget, messageId: string): MessageRow {
  const row = findMessage(deps.database.queries, room.room_uid, messageId);
  if (row) return row;
  throw new ServiceError("message_not_found", { detail: `Room ${room.room_id} has no message ${messageId}.` });
}

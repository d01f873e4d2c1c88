/**
 * The names of rooms in the audit. Every record of a room carries its name, since lists are filtered by it; records written by
 * earlier versions may have `room_uid` alone.
 */
import { and, eq, inArray, isNull, or, type SQL, sql } from "drizzle-orm";
import { preparedBy, type Queries, rawQuery } from "../../db/client.ts";
import type { AuditEntry } from "./entry.ts";
import { audit } from "./table.ts";

const nameOf = preparedBy((queries: Queries) =>
  rawQuery<{ room_id: string }>(queries, "SELECT room_id FROM rooms WHERE room_uid = ?"),
);

/** Fills in the room's name. It stays empty only if the room's row is gone. Within the transaction that appends. */
export function withRoomName(queries: Queries, entry: AuditEntry): AuditEntry {
  if (entry.room_uid === undefined || entry.room_id !== undefined) return entry;
  const [room] = nameOf(queries)([entry.room_uid]);
  return room ? { ...entry, room_id: room.room_id } : entry;
}

/** Records of the organization's rooms of a name, including records without the name. */
export function isOfRoomNamed(orgId: string | null, roomId: string): SQL | undefined {
  if (orgId === null) return eq(audit.room_id, roomId);
  const named = sql`(SELECT room_uid FROM rooms WHERE org_id = ${orgId} AND room_id = ${roomId})`;
  return or(eq(audit.room_id, roomId), and(isNull(audit.room_id), inArray(audit.room_uid, named)));
}

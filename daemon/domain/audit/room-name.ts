/** The names of rooms in the audit: every record of a room carries its name, since lists are filtered by it. */
import { preparedBy, type Queries, rawQuery } from "../../db/client.ts";
import type { AuditEntry } from "./entry.ts";

const nameOf = preparedBy((queries: Queries) =>
  rawQuery<{ room_id: string }>(queries, "SELECT room_id FROM rooms WHERE room_uid = ?"),
);

/** Fills in the room's name. It stays empty only if the room's row is gone. Within the transaction that appends. */
export function withRoomName(queries: Queries, entry: AuditEntry): AuditEntry {
  if (entry.room_uid === undefined || entry.room_id !== undefined) return entry;
  const [room] = nameOf(queries)([entry.room_uid]);
  return room ? { ...entry, room_id: room.room_id } : entry;
}

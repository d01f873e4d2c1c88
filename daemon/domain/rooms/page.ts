/** A page of rooms, as every list of them has it: of the caller's organization, and of those that its key is bound to. */
import { DEFAULT_PAGE, type InputOf } from "../../../shared/api/contract.ts";
import type { roomList } from "../../../shared/api/rooms.ts";
import { readCursor, toPage } from "../../core/cursor.ts";
import type { Caller } from "../../core/operation.ts";
import type { Queries } from "../../db/client.ts";
import { listRooms } from "./store.ts";
import type { RoomRow } from "./table.ts";

/** Throws invalid_cursor. */
export function pageOfRooms(
  queries: Queries,
  { org_id, room_ids }: Caller,
  { state, label, limit = DEFAULT_PAGE, cursor }: InputOf<typeof roomList>,
): { rows: RoomRow[]; next_cursor: string | null } {
  const kind = `rooms ${org_id}`;
  const after = readCursor(kind, cursor);
  const rows = listRooms(queries, { org_id, room_ids, state, label, after, limit: limit + 1 });
  return toPage(kind, rows, limit, (row) => row.room_uid);
}

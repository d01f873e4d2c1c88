/** Pagination, shared by all lists of rooms: rooms of the caller's organization, limited to the rooms that its key is bound to, if any. */
import { DEFAULT_PAGE, type InputOf } from "../../../shared/api/contract.ts";
import type { roomList } from "../../../shared/api/rooms.ts";
import { makeCursor, readCursor, toPage } from "../../core/call/cursor.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { Queries } from "../../db/client.ts";
import { listRooms } from "./store.ts";
import type { RoomRow } from "./table.ts";

/** `hostId` is this host's name. Throws invalid_cursor. */
export function pageOfRooms(
  queries: Queries,
  hostId: string,
  { org_id, room_ids }: Caller,
  { state, label, host = hostId, order, limit = DEFAULT_PAGE, cursor }: InputOf<typeof roomList>,
): { rows: RoomRow[]; next_cursor: string | null } {
  const after = afterRoom(org_id, order, cursor);
  if (host !== hostId) return { rows: [], next_cursor: null };
  const rows = listRooms(queries, { org_id, room_ids, state, label, order, after, limit: limit + 1 });
  return toPage(kindOf(org_id, order), rows, limit, (row) => row.room_uid);
}

type Order = InputOf<typeof roomList>["order"];

const kindOf = (orgId: string, order: Order) => `rooms ${order === "desc" ? "desc " : ""}${orgId}`;

/** The room after which a page starts; null: the first page. Throws invalid_cursor. */
export function afterRoom(orgId: string, order: Order, cursor: string | undefined): string | null {
  return readCursor(kindOf(orgId, order), cursor);
}

/** The cursor of the page after a room; identical on all hosts. */
export function cursorAfterRoom(orgId: string, order: Order, roomUid: string): string {
  return makeCursor(kindOf(orgId, order), roomUid);
}

/** Compares by creation. */
export function compareRooms(order: Order, one: string, other: string): number {
  if (one === other) return 0;
  return (one < other ? -1 : 1) * (order === "desc" ? -1 : 1);
}

type Listed = Pick<RoomRow, "room_id" | "room_uid" | "labels">;

/** Whether a live room may be on a page, as far as that can be determined without its row. */
export function isOfPage(
  { room_id, room_uid, labels }: Listed,
  { room_ids }: Pick<Caller, "room_ids">,
  { state, label, order }: InputOf<typeof roomList>,
  after: string | null,
): boolean {
  const [name = "", ...rest] = label?.split(":") ?? [];
  return (
    (state === undefined || state === "active") &&
    (room_ids === null || room_ids.includes(room_id)) &&
    (label === undefined || (Object.hasOwn(labels, name) && labels[name] === rest.join(":"))) &&
    (after === null || compareRooms(order, room_uid, after) > 0)
  );
}

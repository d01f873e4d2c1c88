/**
 * Row sets: the rows of a room in the tables of agents, messages and barriers have a key in place of the room's uid. A restore writes the
 * checkpoint's rows under another key, in many commits, and the commit that exchanges the keys is the restore. A room without an entry has
 * its own uid as the key. Rows of a key that no room has are leftovers, which the next start removes.
 */
import { eq, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { ulid } from "ulid";
import type { RoomUid } from "../../shared/ids.ts";
import { preparedBy, type Queries, rawQuery } from "./client.ts";

declare const brand: unique symbol;
/** Key of a row set. */
export type RowsKey = string & { readonly [brand]: "rows" };

export const roomRows = sqliteTable("room_rows", {
  room_uid: text().$type<RoomUid>().primaryKey(),
  rows_key: text().$type<RowsKey>().notNull(),
});

const lookups = preparedBy((queries) => ({
  byRoom: rawQuery<{ rows_key: RowsKey }>(queries, "SELECT rows_key FROM room_rows WHERE room_uid = ?"),
  byKey: rawQuery<{ room_uid: RoomUid }>(queries, "SELECT room_uid FROM room_rows WHERE rows_key = ?"),
}));

/** Key of a room that was never restored and has not moved. */
export const ownRows = (roomUid: RoomUid): RowsKey => roomUid as string as RowsKey;

export const newRows = (roomUid: RoomUid): RowsKey => `${roomUid}.${ulid()}` as RowsKey;

export function rowsOf(queries: Queries, roomUid: RoomUid): RowsKey {
  return lookups(queries).byRoom([roomUid])[0]?.rows_key ?? ownRows(roomUid);
}

/** The room of a row; null for a leftover of a room that has other rows by now. */
export function roomOf(queries: Queries, rows: RowsKey): RoomUid | null {
  const { byKey, byRoom } = lookups(queries);
  const named = byKey([rows])[0]?.room_uid;
  if (named !== undefined) return named;
  return byRoom([rows]).length > 0 ? null : (rows as string as RoomUid);
}

/** The key of a room, as a subquery. */
export function rowsIn(roomUid: SQLWrapper): SQL<RowsKey> {
  return sql`ifnull((SELECT rows_key FROM room_rows WHERE room_rows.room_uid = ${roomUid}), ${roomUid})`;
}

/** Within a transaction: the room's rows are those of this key from now on. */
export function useRows(queries: Queries, roomUid: RoomUid, rows_key: RowsKey): void {
  forgetRows(queries, roomUid);
  if (rows_key === ownRows(roomUid)) return;
  queries.insert(roomRows).values({ room_uid: roomUid, rows_key }).run();
}

/** Within a transaction: the room and its rows are gone. */
export function forgetRows(queries: Queries, roomUid: RoomUid): void {
  queries.delete(roomRows).where(eq(roomRows.room_uid, roomUid)).run();
}

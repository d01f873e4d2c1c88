/** The table of barriers, as queries see it: a row per generation. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { BarrierState } from "../../../shared/api/barriers.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { RowsKey } from "../../db/room-rows.ts";

export const barriers = sqliteTable(
  "barriers",
  {
    /** Key of the room's rows. */
    room_uid: text().$type<RowsKey>().notNull(),
    barrier_id: text().notNull(),
    generation: integer().notNull(),
    state: text().$type<BarrierState>().notNull(),
    parties: integer().notNull(),
    participants: text({ mode: "json" }).$type<string[]>(),
    arrived: text({ mode: "json" }).$type<string[]>().notNull(),
    dead: text({ mode: "json" }).$type<string[]>().notNull(),
    opened_at: text().notNull(),
    ended_at: text(),
  },
  (table) => [primaryKey({ columns: [table.room_uid, table.barrier_id, table.generation] })],
);

/** A row with the uid of its room in place of the key. */
export type BarrierRow = Omit<typeof barriers.$inferSelect, "room_uid"> & { room_uid: RoomUid };

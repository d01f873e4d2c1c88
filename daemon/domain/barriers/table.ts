/** The table of barriers, as queries see it: a row per generation. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { BarrierState } from "../../../shared/api/barriers.ts";
import type { RoomUid } from "../../../shared/ids.ts";

export const barriers = sqliteTable(
  "barriers",
  {
    room_uid: text().$type<RoomUid>().notNull(),
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

export type BarrierRow = typeof barriers.$inferSelect;

/** The table of agents, as queries see it. */
import { primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { RoomUid } from "../../../shared/ids.ts";
import type { RowsKey } from "../../db/room-rows.ts";

export const agents = sqliteTable(
  "agents",
  {
    /** Key of the room's rows. */
    room_uid: text().$type<RowsKey>().notNull(),
    agent_id: text().notNull(),
    topics: text({ mode: "json" }).$type<string[]>().notNull(),
    last_seen_at: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.room_uid, table.agent_id] })],
);

/** A row with the uid of its room in place of the key. */
export type AgentRow = Omit<typeof agents.$inferSelect, "room_uid"> & { room_uid: RoomUid };

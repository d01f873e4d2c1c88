/** The table of agents, as queries see it. */
import { primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { RoomUid } from "../../../shared/ids.ts";

export const agents = sqliteTable(
  "agents",
  {
    room_uid: text().$type<RoomUid>().notNull(),
    agent_id: text().notNull(),
    topics: text({ mode: "json" }).$type<string[]>().notNull(),
    last_seen_at: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.room_uid, table.agent_id] })],
);

export type AgentRow = typeof agents.$inferSelect;

/** Owns the table of rooms as the queries see it. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { RoomState } from "../../../shared/api/rooms.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";

export const rooms = sqliteTable("rooms", {
  room_uid: text().$type<RoomUid>().primaryKey(),
  room_id: text().notNull(),
  org_id: text().$type<OrgId>().notNull(),
  host_id: text().notNull(),
  state: text().$type<RoomState>().notNull(),
  status_reason: text().notNull(),
  status_message: text().notNull(),
  last_transition_at: text().notNull(),
  labels: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
  drive_limit_bytes: integer().notNull(),
  drive_until_at: text(),
  created_at: text().notNull(),
  updated_at: text().notNull(),
  expires_at: text(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
  keep_drive: integer({ mode: "boolean" }).notNull(),
});

export type RoomRow = typeof rooms.$inferSelect;

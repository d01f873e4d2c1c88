/** Drizzle schema of exposed ports. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { PortVisibility } from "../../../shared/api/shown-port.ts";
import type { KeyId, OrgId, RoomUid } from "../../../shared/ids.ts";

export const ports = sqliteTable("ports", {
  label: text().primaryKey(),
  sandbox_id: text().notNull(),
  port: integer().notNull(),
  visibility: text().$type<PortVisibility>().notNull(),
  wish: text(),
  org_id: text().$type<OrgId>().notNull(),
  room_uid: text().$type<RoomUid>().notNull(),
  agent_id: text().notNull(),
  created_at: text().notNull(),
  expires_at: text(),
  /** First key of the line whose end ends the port; null for none. */
  ends_with: text().$type<KeyId>(),
});

export type PortRow = typeof ports.$inferSelect;

/** Ended makers of ports. */
export const endedPortMakers = sqliteTable("ended_port_makers", {
  ends_with: text().$type<KeyId>().primaryKey(),
  ended_at: text().notNull(),
});

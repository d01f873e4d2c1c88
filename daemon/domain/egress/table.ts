/** Owns the table of what sandboxes sent and received, as the queries see it. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { OrgId, RoomUid, SandboxId } from "../../../shared/ids.ts";

export const egressUsage = sqliteTable("egress_usage", {
  sandbox_id: text().$type<SandboxId>().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  room_uid: text().$type<RoomUid>().notNull(),
  sent_bytes: integer().notNull(),
  received_bytes: integer().notNull(),
  connections: integer().notNull(),
});

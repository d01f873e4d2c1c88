/** Drizzle schema of the traffic of sandboxes and its destinations. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { OrgId, RoomUid, SandboxId } from "../../../shared/ids.ts";
import type { DenialReason } from "./denials.ts";

export const egressUsage = sqliteTable("egress_usage", {
  sandbox_id: text().$type<SandboxId>().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  room_uid: text().$type<RoomUid>().notNull(),
  sent_bytes: integer().notNull(),
  received_bytes: integer().notNull(),
  connections: integer().notNull(),
});

/** A row for each tracked destination. */
export const egressDestinations = sqliteTable(
  "egress_destinations",
  {
    sandbox_id: text().$type<SandboxId>().notNull(),
    allowed: integer({ mode: "boolean" }).notNull(),
    slot: integer().notNull(),
    host: text(),
    ip: text(),
    port: integer(),
    reason: text().$type<DenialReason>(),
    connections: integer().notNull(),
    sent_bytes: integer().notNull(),
    received_bytes: integer().notNull(),
    first_at: text().notNull(),
    last_at: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.sandbox_id, table.allowed, table.slot] })],
);

/** Connections without a destination row of their own. */
export const egressNetworks = sqliteTable("egress_networks", {
  sandbox_id: text().$type<SandboxId>().primaryKey(),
  since: text().notNull(),
  allowed: integer().notNull(),
  refused: integer().notNull(),
});

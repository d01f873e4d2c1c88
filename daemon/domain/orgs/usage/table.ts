/** Drizzle tables of usage. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";

const place = {
  org_id: text().$type<OrgId>().notNull(),
  room_uid: text().$type<RoomUid>().notNull(),
  agent_id: text().notNull(),
  key_id: text().notNull(),
};

export const usage = sqliteTable(
  "usage",
  {
    org_id: place.org_id,
    day: text().notNull(),
    room_uid: place.room_uid,
    agent_id: place.agent_id,
    key_id: place.key_id,
    sandbox_ms: integer().notNull(),
    vcpu_ms: integer().notNull(),
    memory_mib_ms: integer().notNull(),
    exec_count: integer().notNull(),
    messages: integer().notNull(),
    egress_bytes: integer().notNull(),
    drive_byte_hours: integer().notNull(),
    build_ms: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.day, table.room_uid, table.agent_id, table.key_id] })],
);

export const usageOpen = sqliteTable(
  "usage_open",
  {
    subject: text().notNull().unique(),
    ...place,
    vcpu_count: integer().notNull(),
    memory_mib: integer().notNull(),
    drive_bytes: integer().notNull(),
    wall_ms: integer().notNull(),
    uptime_ms: integer().notNull(),
    boot_id: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.room_uid, table.subject] })],
);

export const orgCredits = sqliteTable("org_credits", {
  org_id: text().$type<OrgId>().primaryKey(),
  used_micro: integer().notNull(),
  exhausted_at: text(),
});

export const creditGrants = sqliteTable("credit_grants", {
  org_id: text().$type<OrgId>().primaryKey(),
  granted: integer().notNull(),
});

export const creditLedger = sqliteTable("credit_ledger", {
  entry_id: text().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  at: text().notNull(),
  kind: text().$type<"grant" | "withdrawal" | "spend">().notNull(),
  amount_micro: integer().notNull(),
  reason: text().notNull(),
  /** Name of the effect, unique within an organization. */
  effect: text().notNull(),
});

export type LedgerRow = typeof creditLedger.$inferSelect;
/** `granted` null: nothing was. */
export type CreditRow = typeof orgCredits.$inferSelect & { granted: number | null };
export type UsageRow = typeof usage.$inferSelect;
export type OpenRow = typeof usageOpen.$inferSelect;

/** The tables of shared rows, as queries see this host's copy, and the list of those tables. */
import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import { type SharedTable, whole } from "../db/shared-rows.ts";
import type { OrgUse } from "./directory.ts";

const granting = (name: string): SharedTable => ({ name, grantsAccess: true });

/** Tables shared by all hosts: rows of these are changed only through the cluster directory. Referenced tables come first. */
export const SHARED_TABLES: readonly SharedTable[] = [
  ...["hosts", "placements", "org_use", "orgs", "credit_grants"].map(whole),
  ...["api_keys", "ssh_keys", "users", "memberships", "links", "sessions", "identities", "passkeys"].map(granting),
  ...["departed_subjects"].map(whole),
  ...[
    "browsers",
    "signup_grants",
    "signup_requests",
    "oauth_clients",
    "oauth_devices",
    "oauth_grants",
    "oauth_tokens",
  ].map(granting),
  ...["billing_checkouts", "billing_customers", "billing_events", "webhooks"].map(whole),
  // Each host has its own rows of spent credits.
  { name: "credit_ledger", but: { column: "kind", is: "spend" } },
];

export const hosts = sqliteTable("hosts", {
  host_id: text().primaryKey(),
  state: text().$type<"active" | "draining" | "gone">().notNull(),
  address: text().notNull(),
  certificate: text().notNull(),
  url: text().notNull(),
  labels: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
  joined_at: text().notNull(),
});

export type HostRow = typeof hosts.$inferSelect;

export const placements = sqliteTable("placements", {
  room_uid: text().$type<RoomUid>().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  room_id: text().notNull(),
  host_id: text().notNull(),
  epoch: integer().notNull(),
  labels: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
  created_at: text().notNull(),
  /** Another host that has the room in the same epoch. */
  contested_by: text(),
  /** Use of a room that moves from another host; null once the new host has its rows. */
  moved_use: text({ mode: "json" }).$type<OrgUse>(),
});

export type PlacementRow = typeof placements.$inferSelect;
export type NewPlacementRow = typeof placements.$inferInsert;

export const orgUse = sqliteTable(
  "org_use",
  {
    org_id: text().$type<OrgId>().notNull(),
    host_id: text().notNull(),
    rooms: integer().notNull(),
    sandboxes: integer().notNull(),
    memory_mib: integer().notNull(),
    disk_gib: real().notNull(),
    used_micro: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.host_id] })],
);

export const mirror = sqliteTable("mirror", {
  only_one: integer().primaryKey(),
  seq: integer().notNull(),
  change_id: text().notNull(),
  seen_seq: integer(),
  seen_change_id: text(),
  is_owed: integer({ mode: "boolean" }).notNull().default(false),
});

/** Rows that granted access until the cluster directory removed them. */
export const tombstones = sqliteTable(
  "tombstones",
  {
    tbl: text().notNull(),
    key: text().notNull(),
    created_at: text().notNull(),
    removed_at: text().notNull(),
    key_sha256: text(),
  },
  (table) => [primaryKey({ columns: [table.tbl, table.key] })],
);

/** Rows of the cluster directory that this host's tables reject. */
export const unfitRows = sqliteTable(
  "unfit_rows",
  {
    tbl: text().notNull(),
    key: text().notNull(),
    row: text(),
    reason: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.tbl, table.key] })],
);

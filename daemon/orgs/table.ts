/** Owns the tables of organizations and their keys as the queries see them. */
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Scope } from "../../shared/api/contract.ts";
import type { KeyId, OrgId } from "../../shared/ids.ts";

export const PLANS = ["free", "starter"] as const;
export type Plan = (typeof PLANS)[number];

export const orgs = sqliteTable("orgs", {
  org_id: text().$type<OrgId>().primaryKey(),
  name: text().notNull(),
  plan: text().$type<Plan>().notNull(),
  created_at: text().notNull(),
});

export const apiKeys = sqliteTable("api_keys", {
  key_id: text().$type<KeyId>().primaryKey(),
  org_id: text().$type<OrgId>(),
  kind: text().$type<"api" | "operator">().notNull(),
  name: text().notNull(),
  key_sha256: text().notNull(),
  key_prefix: text().notNull(),
  scopes: text({ mode: "json" }).$type<Scope[]>().notNull(),
  room_ids: text({ mode: "json" }).$type<string[]>(),
  agent_id: text(),
  created_at: text().notNull(),
  expires_at: text(),
  revoked_at: text(),
});

export type OrgRow = typeof orgs.$inferSelect;
export type KeyRow = typeof apiKeys.$inferSelect;

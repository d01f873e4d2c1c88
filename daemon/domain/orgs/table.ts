/** Drizzle tables of organizations and their keys. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Scope } from "../../../shared/api/contract.ts";
import type { Plan } from "../../../shared/api/people/plans.ts";
import type { KeyId, OrgId, SshKeyId } from "../../../shared/ids.ts";

export const orgs = sqliteTable("orgs", {
  org_id: text().$type<OrgId>().primaryKey(),
  name: text().notNull(),
  plan: text().$type<Plan>().notNull(),
  created_at: text().notNull(),
  /** Start of the organization's end; nothing is added to it afterwards. */
  ending_at: text(),
  /** Time at which its last resource was removed. */
  ended_at: text(),
  /** Source of the plan. */
  plan_by: text().$type<"operator" | "billing">().notNull().default("operator"),
});

export const apiKeys = sqliteTable("api_keys", {
  key_id: text().$type<KeyId>().primaryKey(),
  org_id: text().$type<OrgId>(),
  kind: text().$type<"api" | "operator" | "oauth">().notNull(),
  name: text().notNull(),
  key_sha256: text().notNull(),
  key_prefix: text().notNull(),
  scopes: text({ mode: "json" }).$type<Scope[]>().notNull(),
  room_ids: text({ mode: "json" }).$type<string[]>(),
  agent_id: text(),
  created_at: text().notNull(),
  expires_at: text(),
  revoked_at: text(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
  /** The key that replaced it in a rotation. */
  replaced_by: text().$type<KeyId>(),
  last_used_at: text(),
  /** The first key of its rotations. */
  first_key_id: text().$type<KeyId>(),
  /** It was revoked because its maker no longer has the right to it. */
  ended_with_maker: integer({ mode: "boolean" }).notNull(),
});

export const sshKeys = sqliteTable("ssh_keys", {
  ssh_key_id: text().$type<SshKeyId>().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  name: text().notNull(),
  algorithm: text().notNull(),
  fingerprint: text().notNull(),
  public_key: text().notNull(),
  created_at: text().notNull(),
  expires_at: text(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
});

export type SshKeyRow = typeof sshKeys.$inferSelect;
export type OrgRow = typeof orgs.$inferSelect;
export type NewOrgRow = Omit<OrgRow, "plan_by" | "ending_at" | "ended_at">;
export type KeyRow = typeof apiKeys.$inferSelect;

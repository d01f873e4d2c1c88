/** Drizzle tables of applications, their grants, tokens and devices. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Scope } from "../../../shared/api/contract.ts";
import type { KeyId, UserId } from "../../../shared/ids.ts";

/** Resource of a grant: the MCP endpoint, or the whole API. */
export type Audience = "mcp" | "api";

export const clients = sqliteTable("oauth_clients", {
  client_id: text().primaryKey(),
  name: text().notNull(),
  redirect_uris: text({ mode: "json" }).$type<string[]>().notNull(),
  created_at: text().notNull(),
});

export const grants = sqliteTable("oauth_grants", {
  key_id: text().$type<KeyId>().primaryKey(),
  user_id: text().$type<UserId>().notNull(),
  client_id: text().notNull(),
  redirect_uri: text(),
  audience: text().$type<Audience>().notNull(),
  code_sha256: text(),
  code_challenge: text(),
  code_expires_at: text(),
  code_used_at: text(),
});

export const tokens = sqliteTable("oauth_tokens", {
  token_sha256: text().primaryKey(),
  key_id: text().$type<KeyId>().notNull(),
  kind: text().$type<"access" | "refresh">().notNull(),
  created_at: text().notNull(),
  expires_at: text().notNull(),
  rotated_at: text(),
  salt: text(),
});

export const devices = sqliteTable("oauth_devices", {
  device_sha256: text().primaryKey(),
  user_code: text().notNull(),
  client_id: text().notNull(),
  audience: text().$type<Audience>().notNull(),
  scopes: text({ mode: "json" }).$type<Scope[]>().notNull(),
  ip: text(),
  created_at: text().notNull(),
  expires_at: text().notNull(),
  allowed: integer({ mode: "boolean" }),
  key_id: text().$type<KeyId>(),
});

export type ClientRow = typeof clients.$inferSelect;
export type GrantRow = typeof grants.$inferSelect;
export type TokenRow = typeof tokens.$inferSelect;
export type DeviceRow = typeof devices.$inferSelect;

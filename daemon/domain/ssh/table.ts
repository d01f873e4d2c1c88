/** Drizzle table of short-lived passwords. */
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SshAccessId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";

export const sshAccesses = sqliteTable("ssh_accesses", {
  access_id: text().$type<SshAccessId>().primaryKey(),
  sandbox_id: text().notNull(),
  token_sha256: text().notNull(),
  caller: text({ mode: "json" }).$type<Caller>().notNull(),
  username: text().notNull(),
  created_at: text().notNull(),
  expires_at: text().notNull(),
});

export type SshAccessRow = typeof sshAccesses.$inferSelect;

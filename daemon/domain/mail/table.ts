/** Drizzle table of mail. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { LinkId, MailId, UserId } from "../../../shared/ids.ts";
import type { EmailKind } from "./templates.ts";

export const mails = sqliteTable("mails", {
  mail_id: text().$type<MailId>().primaryKey(),
  kind: text().$type<EmailKind>().notNull(),
  to_address: text().notNull(),
  /** The signed-in user that requested it; null if not signed in. */
  user_id: text().$type<UserId>(),
  link_id: text().$type<LinkId>(),
  created_at: text().notNull(),
  attempts: integer().notNull(),
  /** Time of the next attempt; null: none follows. */
  next_at: text(),
  outcome: text().$type<"sent" | "refused" | "expired" | "void">(),
});

export type MailRow = typeof mails.$inferSelect;

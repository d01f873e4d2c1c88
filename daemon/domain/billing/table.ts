/** Drizzle tables of billing. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { KeyId, OrgId, UserId } from "../../../shared/ids.ts";
import type { Subscription } from "./provider.ts";

export const billingCustomers = sqliteTable("billing_customers", {
  org_id: text().$type<OrgId>().primaryKey(),
  customer_id: text().notNull(),
  subscription_id: text(),
  /** none: the organization has bought nothing yet. */
  status: text().$type<Subscription["status"] | "none">().notNull(),
  period_end: text(),
  cancels_at_end: integer({ mode: "boolean" }).notNull(),
  past_due_since: text(),
  asked_at: text().notNull(),
  /** End of the last paid period. */
  paid_until: text(),
});

export const billingEvents = sqliteTable("billing_events", {
  event_id: text().primaryKey(),
  customer_id: text(),
  received_at: text().notNull(),
  done_at: text(),
});

export const billingCheckouts = sqliteTable("billing_checkouts", {
  checkout_id: text().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  user_id: text().$type<UserId>().notNull(),
  created_at: text().notNull(),
  key_id: text().$type<KeyId>(),
});

export type CustomerRow = typeof billingCustomers.$inferSelect;
export type BillingEventRow = typeof billingEvents.$inferSelect;
export type CheckoutRow = typeof billingCheckouts.$inferSelect;

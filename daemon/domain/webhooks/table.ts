/** Tables of webhooks (shared by hosts), of this host's progress with each, and of deliveries. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { DeliveryRecord, WebhookRecord } from "../../../shared/api/webhooks.ts";
import type { OrgId, WebhookId } from "../../../shared/ids.ts";

export const webhooks = sqliteTable("webhooks", {
  webhook_id: text().$type<WebhookId>().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  sealed_url: text().notNull(),
  types: text({ mode: "json" }).$type<string[]>().notNull(),
  room_ids: text({ mode: "json" }).$type<string[]>(),
  disabled_reason: text().$type<WebhookRecord["disabled_reason"]>(),
  disabled_at: text(),
  secret_number: integer().notNull(),
  former_until: text(),
  created_at: text().notNull(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
  updated_at: text().notNull(),
  renewed_at: text().notNull(),
  begins_at: text().notNull(),
});

export const webhookProgress = sqliteTable("webhook_progress", {
  webhook_id: text().$type<WebhookId>().primaryKey(),
  seq: integer().notNull(),
  sent_count: integer().notNull(),
  missed_count: integer().notNull(),
  failed_count: integer().notNull(),
  last_sent_at: text(),
  failing_since: text(),
  renewed_at: text().notNull(),
});

export const webhookDeliveries = sqliteTable(
  "webhook_deliveries",
  {
    webhook_id: text().$type<WebhookId>().notNull(),
    delivery_id: text().notNull(),
    seq: integer().notNull(),
    type: text().notNull(),
    event_at: text().notNull(),
    state: text().$type<DeliveryRecord["state"]>().notNull(),
    attempts: integer().notNull(),
    last_attempt_at: text(),
    next_at: text(),
    status: integer(),
    error: text(),
  },
  (table) => [primaryKey({ columns: [table.webhook_id, table.delivery_id] })],
);

export type WebhookRow = typeof webhooks.$inferSelect;
export type DeliveryRow = typeof webhookDeliveries.$inferSelect;

export type ProgressRow = typeof webhookProgress.$inferSelect;

/** A webhook's progress on this host: the fields that only sending changes. */
export type Progress = Omit<ProgressRow, "webhook_id" | "renewed_at">;

/** Progress before anything was sent. */
export function noProgress(seq: number): Progress {
  return { seq, sent_count: 0, missed_count: 0, failed_count: 0, last_sent_at: null, failing_since: null };
}

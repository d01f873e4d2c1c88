/** API records of webhooks and their deliveries. */
import type { DeliveryRecord, WebhookRecord } from "../../../shared/api/webhooks.ts";
import { now } from "../../core/clock.ts";
import type { WebhookDeps } from "./deps.ts";
import type { Sender } from "./lanes.ts";
import type { WebhookSecrets } from "./secrets.ts";
import { countWaiting, getProgress } from "./store.ts";
import { type DeliveryRow, noProgress, type WebhookRow } from "./table.ts";

export type ToWebhookRecord = (row: WebhookRow) => WebhookRecord;

export function makeShown({ database, chains }: WebhookDeps, sender: Sender, secrets: WebhookSecrets): ToWebhookRecord {
  const { queries } = database;
  return (row) => {
    const { org_id, created_by_type: type, created_by_id: id, former_until, ...rest } = row;
    const { secret_number: _, renewed_at: __, begins_at, sealed_url: ___, ...facts } = rest;
    const here = sender.progressOf(row.webhook_id) ?? getProgress(queries, row.webhook_id);
    const { seq, ...progress } = here ?? noProgress(chains.upTo(org_id, begins_at));
    const { sent_count, missed_count, failed_count, last_sent_at, failing_since } = progress;
    return {
      ...facts,
      url: secrets.urlOf(row) ?? "",
      ...{ sent_count, missed_count, failed_count, last_sent_at, failing_since },
      enabled: row.disabled_reason === null,
      created_by: { type, id },
      former_secret_until: former_until !== null && former_until > now() ? former_until : null,
      waiting_count: countWaiting(queries, row.webhook_id),
      behind_count: Math.max(0, chains.head(org_id) - seq),
    };
  };
}

export function toDelivery({ seq: _, ...row }: DeliveryRow): DeliveryRecord {
  return row;
}

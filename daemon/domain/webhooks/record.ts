/** Owns what is shown of webhooks and of what they sent. */
import type { DeliveryRecord, WebhookRecord } from "../../../shared/api/webhooks.ts";
import { now } from "../../core/clock.ts";
import type { WebhookDeps } from "./deps.ts";
import type { Sender } from "./sender.ts";
import { countWaiting } from "./store.ts";
import type { DeliveryRow, WebhookRow } from "./table.ts";

export type Shown = (row: WebhookRow) => WebhookRecord;

export function makeShown({ database, chains }: WebhookDeps, sender: Sender): Shown {
  return (row) => {
    const { org_id, created_by_type: type, created_by_id: id, seq: _, secret_number: __, former_until, ...rest } = row;
    const { seq, ...progress } = sender.progressOf(row.webhook_id) ?? row;
    const { sent_count, missed_count, failed_count, last_sent_at, failing_since } = progress;
    return {
      ...rest,
      ...{ sent_count, missed_count, failed_count, last_sent_at, failing_since },
      enabled: row.disabled_reason === null,
      created_by: { type, id },
      former_secret_until: former_until !== null && former_until > now() ? former_until : null,
      waiting_count: countWaiting(database.queries, row.webhook_id),
      behind_count: Math.max(0, chains.head(org_id) - seq),
    };
  };
}

export function toDelivery({ seq: _, ...row }: DeliveryRow): DeliveryRecord {
  return row;
}

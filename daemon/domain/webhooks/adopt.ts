/** Owns taking over webhooks of before hosts shared them: each is sealed, shared, and goes on where it was. */
import { now, sleep } from "../../core/clock.ts";
import { describeError } from "../../core/service-error.ts";
import { locally } from "../../db/rehearsal.ts";
import type { Database } from "../../db/transact.ts";
import type { WebhookDeps } from "./deps.ts";
import type { WebhookSecrets } from "./secrets.ts";
import {
  deleteFormer,
  deleteFormerOf,
  getProgress,
  getWebhook,
  insertProgress,
  insertWebhook,
  listFormer,
} from "./store.ts";
import type { FormerRow, ProgressRow, WebhookRow } from "./table.ts";

const AGAIN_MS = 5000;

interface Adopting {
  /** Some were. */
  adopted(): void;
  signal: AbortSignal;
}

/** Resolves when there are none, or with the signal; where hosts cannot agree just now it tries again. Never rejects. */
export async function adoptFormer(
  { database, directory, hasOrg, log }: WebhookDeps,
  secrets: WebhookSecrets,
  { adopted, signal }: Adopting,
): Promise<void> {
  for (let left = listFormer(database.queries); left.length > 0 && !signal.aborted; ) {
    for (const former of left) {
      if (!hasOrg(former.org_id)) {
        await database.commit((within) => deleteFormerOf(within, former.org_id)).catch(() => undefined);
        continue;
      }
      await adopt(directory.database, partsOf(former, secrets)).catch((error: unknown) => {
        const { webhook_id } = former;
        log.warn("a webhook was not taken over yet", { webhook_id, error: describeError(error) });
      });
    }
    adopted();
    left = listFormer(database.queries);
    if (left.length > 0) await sleep(AGAIN_MS, signal).catch(() => undefined);
  }
}

function adopt(shared: Database, { row, progress }: Parts): Promise<void> {
  const { org_id, webhook_id } = row;
  return shared.commit((within) => {
    if (!getWebhook(within, org_id, webhook_id)) insertWebhook(within, row);
    locally(within, (here) => {
      if (!getProgress(here, webhook_id)) insertProgress(here, progress);
      deleteFormer(here, webhook_id);
    });
  });
}

interface Parts {
  row: WebhookRow;
  progress: ProgressRow;
}

function partsOf(former: FormerRow, secrets: WebhookSecrets): Parts {
  const { url, seq, sent_count, missed_count, failed_count, last_sent_at, failing_since, ...kept } = former;
  const { webhook_id, updated_at: renewed_at } = kept;
  const counts = { sent_count, missed_count, failed_count, last_sent_at, failing_since };
  return {
    row: { ...kept, sealed_url: secrets.seal(webhook_id, url), renewed_at, begins_at: now() },
    progress: { webhook_id, seq, ...counts, renewed_at },
  };
}

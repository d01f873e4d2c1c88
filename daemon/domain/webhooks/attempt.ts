/** One delivery attempt of an event: the request, and the meaning of the response. */
import { VERSION } from "../../../shared/version.ts";
import { monotonicMs, wallMs } from "../../core/clock.ts";
import { post } from "./post.ts";
import { askedSeconds } from "./retry-schedule.ts";
import type { WebhookSecrets } from "./secrets.ts";
import { type SsrfGuard, Unreachable } from "./ssrf-guard.ts";
import type { WebhookRow } from "./table.ts";

const GONE = 410;

export interface Attempt {
  delivered: boolean;
  /** The receiver permanently declines further events. */
  isGone: boolean;
  /** Null: there was no answer. */
  status: number | null;
  error: string | null;
  /** Delay that the receiver requests with Retry-After; null: none. */
  asked_seconds: number | null;
  at_ms: number;
  duration_ms: number;
}

/** The payload of an event, byte-identical in each attempt. */
export interface Message {
  id: string;
  body: string;
}

/** Rejects only on an internal error. */
export async function attempt(
  { reach, secrets }: { reach: SsrfGuard; secrets: WebhookSecrets },
  webhook: WebhookRow,
  { id, body }: Message,
  signal: AbortSignal,
): Promise<Attempt> {
  const at_ms = wallMs();
  const began = monotonicMs();
  const outcome = (fields: Partial<Attempt>): Attempt => ({
    ...{ delivered: false, isGone: false, status: null, error: null, asked_seconds: null, at_ms },
    duration_ms: Math.round(monotonicMs() - began),
    ...fields,
  });
  try {
    const sealed = secrets.urlOf(webhook);
    if (sealed === null)
      throw new Unreachable(
        "The webhook's URL cannot be decrypted, because the key of webhooks has changed: set its URL again.",
      );
    const url = new URL(sealed);
    const addresses = await reach.addressesOf(url, { org_id: webhook.org_id, sandbox_id: webhook.webhook_id }, signal);
    const timestamp = Math.floor(at_ms / 1000);
    const headers = {
      "content-type": "application/json",
      "user-agent": `roomd/${VERSION}`,
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": secrets.sign(webhook, { id, timestamp, body }),
    };
    const { status, retryAfter } = await post(url, addresses, headers, body, signal);
    if (status >= 200 && status < 300) return outcome({ delivered: true, status });
    return outcome({
      isGone: status === GONE,
      status,
      error: wordsOf(status),
      asked_seconds: askedSeconds(status, retryAfter, wallMs()),
    });
  } catch (error) {
    if (error instanceof Unreachable) return outcome({ error: error.message });
    throw error;
  }
}

function wordsOf(status: number): string {
  if (status === GONE) return "The receiver answered 410: it rejects further events.";
  if (status >= 300 && status < 400) return `The receiver answered ${status}: redirects are not followed.`;
  return `The receiver answered ${status}.`;
}

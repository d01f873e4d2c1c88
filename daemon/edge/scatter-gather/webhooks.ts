/**
 * Merges the state of webhooks on all hosts: a webhook is the same on all of them, and each host has sent the events that occurred on it. A
 * host that does not answer is named.
 */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import type { WebhookRecord, webhookDeliveries, webhookGet, webhookList } from "../../../shared/api/webhooks.ts";
import { cursorAfterDelivery } from "../../domain/webhooks/index.ts";
import type { HostPart, Merging } from "./rule.ts";
import { withWarnings } from "./words.ts";

const PATIENCE_MS = 1000;
const NOT_COUNTED = "events that it has sent are not counted.";

export const webhookOfAll: Merging<typeof webhookGet> = {
  patienceMs: PATIENCE_MS,
  merge: (own, others, { silent }) => ({
    ...together(own.body, bodiesOf(others)),
    ...withWarnings(silent, NOT_COUNTED),
  }),
};

export const listOfWebhooks: Merging<typeof webhookList> = {
  patienceMs: PATIENCE_MS,
  merge: (own, others, { silent }) => {
    const theirs = bodiesOf(others).flatMap(({ items }) => items);
    const items = own.body.items.map((each) =>
      together(
        each,
        theirs.filter(({ webhook_id }) => webhook_id === each.webhook_id),
      ),
    );
    return { ...own.body, items, ...withWarnings(silent, NOT_COUNTED) };
  },
};

export const deliveriesOfAll: Merging<typeof webhookDeliveries> = {
  patienceMs: PATIENCE_MS,
  merge: (own, others, { input, silent }) => {
    const { limit = DEFAULT_PAGE, webhook_id } = input;
    const pages = [own.body, ...bodiesOf(others)];
    const items = pages.flatMap((page) => page.items).sort((a, b) => (a.delivery_id > b.delivery_id ? -1 : 1));
    const shown = items.slice(0, limit);
    const last = shown.at(-1);
    const isMore = items.length > limit || pages.some(({ next_cursor }) => next_cursor !== null);
    return {
      items: shown,
      next_cursor: isMore && last ? cursorAfterDelivery(webhook_id, last.delivery_id) : null,
      ...withWarnings(silent, "events that it failed to send are not listed."),
    };
  },
};

const bodiesOf = <Body>(parts: readonly HostPart<Body>[]): Body[] => parts.map(({ body }) => body);

/** One webhook with the deliveries of all hosts. It is failing if it fails on any host, since the earliest such time. */
function together(own: WebhookRecord, others: readonly WebhookRecord[]): WebhookRecord {
  const all = [own, ...others];
  const sum = (count: (of: WebhookRecord) => number) => all.reduce((total, each) => total + count(each), 0);
  const times = (time: (of: WebhookRecord) => string | null) => all.flatMap((each) => time(each) ?? []).sort();
  return {
    ...own,
    sent_count: sum((each) => each.sent_count),
    waiting_count: sum((each) => each.waiting_count),
    behind_count: sum((each) => each.behind_count),
    missed_count: sum((each) => each.missed_count),
    failed_count: sum((each) => each.failed_count),
    last_sent_at: times((each) => each.last_sent_at).at(-1) ?? null,
    failing_since: times((each) => each.failing_since)[0] ?? null,
  };
}

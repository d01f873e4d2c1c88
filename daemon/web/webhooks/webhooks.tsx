/** The page of the organization's webhooks: URLs, delivery status, and failed and retried deliveries. */
import type { DeliveryRecord, WebhookRecord, webhookDeliveries, webhookList } from "../../../shared/api/webhooks.ts";
import { pathOf } from "../../../shared/places.ts";
import { Empty, Head, Line, type Look, Shown, State } from "../components/parts.tsx";
import { Table } from "../components/table.tsx";
import { Ago, Clock, countText, Foreign } from "../components/text.tsx";
import { get, part } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { Live } from "../shell/live-state.tsx";
import { place } from "../shell/router.ts";
import { useTitle } from "../shell/title.ts";

/** An organization has fewer webhooks; of deliveries, the newest ones are shown. */
const MOST = 100;
const HOOKS = "/v1/orgs/self/webhooks";
/** Any event may be sent: the list is reloaded soon, but not after each of many events. */
const PACE = { firstMs: 1000, steadyMs: 10_000 };

export default function Webhooks() {
  useTitle("Webhooks");
  const found = useLoaded(
    "webhooks",
    (signal) => get<typeof webhookList>(HOOKS, { limit: MOST }, signal),
    () => true,
    PACE,
  );
  const selectedId = place.value.query.get("webhook");
  return (
    <>
      <Head title="Webhooks">
        <Live />
      </Head>
      <Shown of={found}>
        {({ items }) => {
          if (items.length === 0) {
            return (
              <Empty title="No webhooks yet.">
                <p>A webhook sends the organization's events to your URL, signed:</p>
                <Line words={["webhook", "create", "https://example.org/hooks/roomd", "--type", "sandbox."]} />
              </Empty>
            );
          }
          const chosen = items.find(({ webhook_id }) => webhook_id === selectedId) ?? (items[0] as WebhookRecord);
          return (
            <>
              <WebhookTable items={items} chosen={chosen.webhook_id} />
              <Deliveries key={chosen.webhook_id} of={chosen} />
            </>
          );
        }}
      </Shown>
    </>
  );
}

const REASONS = {
  by_request: "disabled",
  gone: "disabled: its receiver answered 410",
  failing: "disabled: its receiver accepted nothing for 5 days",
  maker_ended: "disabled: its maker's access ended",
};

function stateOf({ disabled_reason, failing_since }: WebhookRecord): [look: Look, words: string] {
  if (disabled_reason !== null) return [disabled_reason === "by_request" ? "quiet" : "bad", REASONS[disabled_reason]];
  return failing_since === null ? ["ok", "enabled"] : ["wait", "failing"];
}

function WebhookTable({ items, chosen }: { items: readonly WebhookRecord[]; chosen: string }) {
  return (
    <Table
      classes={{ Sent: "num", Waiting: "num", Missed: "num", Failed: "num" }}
      rows={items.map((each) => {
        const { webhook_id, url, types, room_ids } = each;
        const [look, words] = stateOf(each);
        const isChosen = webhook_id === chosen;
        return {
          key: webhook_id,
          "aria-current": isChosen ? "true" : undefined,
          cells: {
            URL: (
              <a data-row href={pathOf({ type: "webhook", id: webhook_id, room_id: null, agent_id: null })}>
                <Foreign text={url} most={80} />
              </a>
            ),
            State: <State look={look}>{words}</State>,
            Events: <Foreign text={types.join(" ")} most={80} mono />,
            Rooms: room_ids === null ? "all" : <Foreign text={room_ids.join(" ")} most={80} />,
            Sent: countText(each.sent_count),
            Waiting: countText(each.waiting_count),
            Missed: countText(each.missed_count),
            Failed: countText(each.failed_count),
            "Last sent": <Ago at={each.last_sent_at} />,
          },
        };
      })}
    />
  );
}

const LOOKS: Record<DeliveryRecord["state"], Look> = { waiting: "wait", delivered: "ok", failed: "bad", lost: "bad" };

function Deliveries({ of: { webhook_id, url } }: { of: WebhookRecord }) {
  const found = useLoaded(
    `deliveries ${webhook_id}`,
    (signal) => get<typeof webhookDeliveries>(`${HOOKS}/${part(webhook_id)}/deliveries`, { limit: MOST }, signal),
    () => true,
    PACE,
  );
  return (
    <>
      <h2>Failed and retried deliveries</h2>
      <p class="muted">
        By <Foreign text={url} most={80} />
      </p>
      <Shown of={found}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Every event was delivered at the first attempt.">
              <p>To see the receiver's response, send a test event:</p>
              <Line words={["webhook", "test", webhook_id]} />
            </Empty>
          ) : (
            <>
              <Table
                classes={{ Tries: "num" }}
                rows={items.map(({ delivery_id, type, state, attempts, event_at, next_at, error }) => ({
                  key: delivery_id,
                  cells: {
                    Event: (
                      <a data-row href={pathOf({ type: "audit", id: delivery_id, room_id: null, agent_id: null })}>
                        {type}
                      </a>
                    ),
                    State: <State look={LOOKS[state]}>{state}</State>,
                    Tries: countText(attempts),
                    Happened: <Clock at={event_at} />,
                    "Next try": next_at === null ? null : <Clock at={next_at} />,
                    Why: error === null ? null : <Foreign text={error} />,
                  },
                }))}
              />
              <p class="muted">To resend one of them immediately, even if it was delivered:</p>
              <Line words={["webhook", "redeliver", webhook_id, items[0]?.delivery_id ?? ""]} />
            </>
          )
        }
      </Shown>
    </>
  );
}

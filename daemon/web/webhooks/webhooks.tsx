/** The page of the organization's webhooks: URLs, delivery status, and failed and retried deliveries. */
import type { DeliveryRecord, WebhookRecord, webhookDeliveries, webhookList } from "../../../shared/api/webhooks.ts";
import { pathOf } from "../../../shared/places.ts";
import { Empty, Head, Line, type Look, Shown, State } from "../components/parts.tsx";
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
              <Table items={items} chosen={chosen.webhook_id} />
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

function Table({ items, chosen }: { items: readonly WebhookRecord[]; chosen: string }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>URL</th>
            <th>State</th>
            <th>Events</th>
            <th>Rooms</th>
            <th class="num">Sent</th>
            <th class="num">Waiting</th>
            <th class="num">Missed</th>
            <th class="num">Failed</th>
            <th>Last sent</th>
          </tr>
        </thead>
        <tbody>
          {items.map((each) => {
            const { webhook_id, url, types, room_ids } = each;
            const [look, words] = stateOf(each);
            const isChosen = webhook_id === chosen;
            return (
              <tr key={webhook_id} aria-current={isChosen ? "true" : undefined}>
                <td data-label="URL">
                  <a data-row href={pathOf({ type: "webhook", id: webhook_id, room_id: null, agent_id: null })}>
                    <Foreign text={url} most={80} />
                  </a>
                </td>
                <td data-label="State">
                  <State look={look}>{words}</State>
                </td>
                <td data-label="Events">
                  <Foreign text={types.join(" ")} most={80} mono />
                </td>
                <td data-label="Rooms">
                  {room_ids === null ? "all" : <Foreign text={room_ids.join(" ")} most={80} />}
                </td>
                <td data-label="Sent" class="num">
                  {countText(each.sent_count)}
                </td>
                <td data-label="Waiting" class="num">
                  {countText(each.waiting_count)}
                </td>
                <td data-label="Missed" class="num">
                  {countText(each.missed_count)}
                </td>
                <td data-label="Failed" class="num">
                  {countText(each.failed_count)}
                </td>
                <td data-label="Last sent">
                  <Ago at={each.last_sent_at} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
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
              <div class="scroll">
                <table>
                  <thead>
                    <tr>
                      <th>Event</th>
                      <th>State</th>
                      <th class="num">Tries</th>
                      <th>Happened</th>
                      <th>Next try</th>
                      <th>Why</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map(({ delivery_id, type, state, attempts, event_at, next_at, error }) => (
                      <tr key={delivery_id}>
                        <td data-label="Event">
                          <a data-row href={pathOf({ type: "audit", id: delivery_id, room_id: null, agent_id: null })}>
                            {type}
                          </a>
                        </td>
                        <td data-label="State">
                          <State look={LOOKS[state]}>{state}</State>
                        </td>
                        <td data-label="Tries" class="num">
                          {countText(attempts)}
                        </td>
                        <td data-label="Happened">
                          <Clock at={event_at} />
                        </td>
                        <td data-label="Next try">{next_at === null ? null : <Clock at={next_at} />}</td>
                        <td data-label="Why">{error === null ? null : <Foreign text={error} />}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <p class="muted">To resend one of them immediately, even if it was delivered:</p>
              <Line words={["webhook", "redeliver", webhook_id, items[0]?.delivery_id ?? ""]} />
            </>
          )
        }
      </Shown>
    </>
  );
}

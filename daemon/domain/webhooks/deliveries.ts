/** Operations on a webhook's deliveries: list failed and retried ones, redeliver an event, and send a test event. */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import {
  MAX_WAITING,
  type WebhookEvent,
  webhookDeliveries,
  webhookRedeliver,
  webhookTestSend,
} from "../../../shared/api/webhooks.ts";
import { newId } from "../../../shared/ids.ts";
import { makeCursor, readCursor, toPage } from "../../core/call/cursor.ts";
import { actorOf, type Bound, bind, type KeyCall } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { WebhookDeps } from "./deps.ts";
import { bodyOf } from "./event.ts";
import { findWebhook } from "./find.ts";
import type { Sender } from "./lanes.ts";
import { toDelivery } from "./record.ts";
import { countWaiting, getDelivery, getWebhook, listDeliveries, putDelivery } from "./store.ts";
import type { DeliveryRow, WebhookRow } from "./table.ts";

const TEST_TYPE = "webhook.test";

export function makeDeliveries(deps: WebhookDeps, sender: Sender): Bound[] {
  const { database, chains } = deps;
  const { queries } = database;
  /** An event that is sent again as if it were new. Throws delivery_not_found. */
  const eventToSend = async (
    { org_id, webhook_id }: WebhookRow,
    id: string,
    left: AbortSignal,
  ): Promise<DeliveryRow> => {
    const known = getDelivery(queries, webhook_id, id);
    const record = known ? chains.at(org_id, known.seq) : await chains.find(org_id, id, left);
    if (record?.audit_id !== id) {
      throw new ServiceError("delivery_not_found", { detail: `The organization's audit has no event ${id}.` });
    }
    const { seq, event: type, at: event_at } = record;
    const row = { webhook_id, delivery_id: id, seq, type, event_at, state: "waiting", attempts: 0 } as const;
    return { ...row, last_attempt_at: null, next_at: now(), status: null, error: null };
  };
  return [
    bind(webhookDeliveries, {
      find: (call, params) => findWebhook(deps, call, params),
      run: (_call, { limit = DEFAULT_PAGE, cursor }, { webhook_id }) => {
        const kind = kindOf(webhook_id);
        const found = listDeliveries(queries, webhook_id, readCursor(kind, cursor), limit + 1);
        const { rows, next_cursor } = toPage(kind, found, limit, (row) => row.delivery_id);
        return { outcome: "ok", body: { items: rows.map(toDelivery), next_cursor } };
      },
    }),

    bind(webhookRedeliver, {
      find: (call, params) => ({ webhook: findWebhook(deps, call, params), delivery_id: String(params.delivery_id) }),
      run: async (call, _input, { webhook, delivery_id }) => {
        const { org_id, webhook_id, disabled_reason } = webhook;
        call.audit.details = { webhook_id, event_id: delivery_id };
        if (disabled_reason !== null) {
          throw new ServiceError("invalid_state", {
            detail: "The webhook is not enabled.",
            hint: "Enable it first: `roomd webhook update WEBHOOK --enable`.",
          });
        }
        const row = await eventToSend(webhook, delivery_id, call.signal);
        await database.commit((within) => {
          // Another call may have deleted it since.
          if (!getWebhook(within, org_id, webhook_id)) throw new ServiceError("webhook_not_found");
          if (countWaiting(within, webhook_id) >= MAX_WAITING) {
            throw new ServiceError("quota_exceeded", {
              detail: `${MAX_WAITING} events of the webhook are already waiting for a retry.`,
            });
          }
          putDelivery(within, row);
        });
        sender.look(webhook_id);
        return { outcome: "accepted", body: toDelivery(getDelivery(queries, webhook_id, delivery_id) ?? row) };
      },
    }),

    bind(webhookTestSend, {
      find: (call, params) => findWebhook(deps, call, params),
      run: async (call, _input, webhook) => {
        const event_id = newId("evt");
        call.audit.details = { webhook_id: webhook.webhook_id, event_id };
        const tried = await sender.test(
          webhook,
          { id: event_id, body: bodyOf(testEvent(call, webhook, event_id)) },
          call.signal,
        );
        const { delivered, status, error, duration_ms } = tried;
        call.audit.details = { ...call.audit.details, delivered, receiver_status: status };
        return { outcome: "ok", body: { event_id, delivered, status, error, duration_ms } };
      },
    }),
  ];
}

const kindOf = (webhookId: string) => `deliveries ${webhookId}`;

/** Cursor of the page of deliveries after this one: the same on all hosts. */
export function cursorAfterDelivery(webhookId: string, deliveryId: string): string {
  return makeCursor(kindOf(webhookId), deliveryId);
}

function testEvent(
  { caller, request_id }: KeyCall,
  { org_id, webhook_id }: WebhookRow,
  event_id: string,
): WebhookEvent {
  const { type, id } = actorOf(caller);
  const nowhere = { room_id: null, room_uid: null, agent_id: null, sandbox_id: null };
  return {
    type: TEST_TYPE,
    timestamp: now(),
    data: {
      ...{ event_id, org_id, ...nowhere, actor: { type, id }, outcome: "success", error_code: null, request_id },
      details: { webhook_id },
    },
  };
}

/** Interface of webhooks: URLs to which an organization's events are sent, and failed and retried deliveries. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, named, nullable, oneOf, operation, page, pageQuery, record, timestamp } from "./contract.ts";
import { orgPath } from "./orgs.ts";
import { actor, anyWarnings, roomId } from "./rooms.ts";

/** Maximum number of webhooks of an organization. */
export const MAX_WEBHOOKS = 20;
/** Events of one webhook that wait for a retry; above the limit, further events wait in the audit. */
export const MAX_WAITING = 1000;
/**
 * Per event, the first included: more than 5 days of retries, so that no event is abandoned before a receiver that accepts nothing is
 * disabled.
 */
export const MAX_TRIES = 17;
/** Maximum number of listed deliveries of one webhook in a final state. */
export const MAX_OVER = 500;
const MAX_TYPES = 64;
const MAX_ROOMS = 256;
const MAX_URL_CHARACTERS = 2048;
const MAX_GRACE_SECONDS = 30 * 86_400;
export const DEFAULT_ROTATION_SECONDS = 86_400;
/** Matches every event in `types`. */
export const EVERY_TYPE = "*";

const webhookId = Type.String({ maxLength: 64, description: "Which webhook of the organization." });
const webhookPath = fields({ ...orgPath.properties, webhook_id: webhookId });
const deliveryPath = fields({
  ...webhookPath.properties,
  delivery_id: Type.String({
    maxLength: 64,
    description: "The event's id, sent to the receiver as webhook-id; any event that the audit still has.",
  }),
});

const url = Type.String({
  minLength: 1,
  maxLength: MAX_URL_CHARACTERS,
  description:
    "Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges).",
  examples: ["https://example.org/hooks/roomd"],
});
const types = Type.Array(
  Type.String({
    pattern: "^(?:\\*|[a-z][a-z0-9_.]{0,127})$",
    description: "Prefix of event names, as in the audit's filter `event`; * is every event.",
    examples: ["sandbox."],
  }),
  {
    minItems: 1,
    maxItems: MAX_TYPES,
    uniqueItems: true,
    description:
      "Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent.",
  },
);
const roomIds = nullable(
  Type.Array(roomId, {
    minItems: 1,
    maxItems: MAX_ROOMS,
    uniqueItems: true,
    description:
      "Only events of rooms with these names, including rooms made later; null: of all, and events of no room.",
  }),
);
const enabled = Type.Boolean({
  description: "Whether events are sent. Events that occur while it is disabled are sent once it is enabled again.",
});

const webhookFields = {
  webhook_id: Type.String({ examples: ["whk_01KG9YXD6P9R2T4W7Y0A3C5E8H"] }),
  url,
  types,
  room_ids: roomIds,
  enabled,
  disabled_reason: nullable(
    oneOf(["by_request", "gone", "failing", "maker_ended"], {
      description:
        "Why it is disabled: by request; its receiver answered 410; its receiver accepted nothing for 5 days; its maker's access ended (a person or a key). The caller that enables it becomes its maker.",
    }),
  ),
  disabled_at: nullable(timestamp),
  created_at: timestamp,
  created_by: actor,
  updated_at: timestamp,
  former_secret_until: nullable({ ...timestamp, description: "Until then the previous secret signs too." }),
  sent_count: Type.Integer({ description: "Events that the receiver has accepted." }),
  waiting_count: Type.Integer({ description: "Events that it did not accept and that will be retried." }),
  behind_count: Type.Integer({ description: "Audit records that are not processed yet." }),
  missed_count: Type.Integer({
    description:
      "Audit records that retention deleted before they were processed or sent. Whether the unprocessed records would have been sent is unknown.",
  }),
  failed_count: Type.Integer({
    description: `Events abandoned after ${MAX_TRIES} attempts, each time it happened. The receiver accepted others in that time: a webhook whose receiver accepts none is disabled first, and no event is abandoned.`,
  }),
  last_sent_at: nullable({ ...timestamp, description: "When the receiver last accepted an event." }),
  failing_since: nullable({ ...timestamp, description: "Since when it has accepted none." }),
};

export const webhookRecord = record("Webhook", { ...webhookFields, warnings: anyWarnings });
export type WebhookRecord = Static<typeof webhookRecord>;

const secret = Type.String({
  description: "Signs the events; shown only once.",
  examples: ["whsec_…"],
});
const newWebhook = record("NewWebhook", { ...webhookFields, secret });

export const deliveryRecord = record("WebhookDelivery", {
  delivery_id: Type.String({
    description: "The event's id: its record in the audit has it as audit_id.",
    examples: ["evt_01KG9Z2CF0X5B8D1F4H7K9N2Q6"],
  }),
  webhook_id: Type.String(),
  type: Type.String({ description: "The event's name." }),
  event_at: timestamp,
  state: oneOf(["waiting", "delivered", "failed", "lost"], {
    description: `waiting: it is retried at next_at. delivered: it was accepted. failed: it was abandoned after ${MAX_TRIES} attempts. lost: the audit's retention deleted it first.`,
  }),
  attempts: Type.Integer({ description: "Number of attempts." }),
  last_attempt_at: nullable(timestamp),
  next_at: nullable({ ...timestamp, description: "Time of the next attempt." }),
  status: nullable(Type.Integer({ description: "The receiver's last HTTP status; null: no response." })),
  error: nullable(Type.String({ description: "Why the last attempt failed, in words." })),
});
export type DeliveryRecord = Static<typeof deliveryRecord>;

const webhookTest = record("WebhookTest", {
  event_id: Type.String({ description: "The header webhook-id." }),
  delivered: Type.Boolean({ description: "Whether the receiver accepted it." }),
  status: nullable(Type.Integer({ description: "The receiver's HTTP status; null: no response." })),
  error: nullable(Type.String({ description: "Why it was not accepted, in words." })),
  duration_ms: Type.Integer({ description: "How long it took." }),
});

/** The request body. */
export const webhookEvent = record("WebhookEvent", {
  type: Type.String({ description: "The event's name, as the audit has it.", examples: ["sandbox.created"] }),
  timestamp: { ...timestamp, description: "When it happened." },
  data: record("WebhookEventData", {
    event_id: Type.String({ description: "The record's audit_id, and the header webhook-id." }),
    org_id: Type.String(),
    room_id: nullable(Type.String()),
    room_uid: nullable(Type.String()),
    agent_id: nullable(Type.String()),
    sandbox_id: nullable(Type.String()),
    actor,
    outcome: oneOf(["success", "denied", "error"]),
    error_code: nullable(Type.String()),
    request_id: nullable(Type.String()),
    details: Type.Record(Type.String(), Type.Unknown(), {
      description:
        "Ids and reasons of the record's details. The whole record is GET /v1/orgs/self/audit?audit_id=EVENT_ID.",
    }),
  }),
});
export type WebhookEvent = Static<typeof webhookEvent>;

const WEBHOOK = ["org_not_found", "webhook_not_found"] as const;

export const webhookCreate = operation({
  name: "webhook_create",
  extension: "webhooks",
  method: "POST",
  path: "/v1/orgs/{org_id}/webhooks",
  summary: "Create a webhook",
  description:
    "Sends the organization's events to a URL, from now on: signed according to Standard Webhooks, in order while nothing fails, each at least once. The answer has the signing secret.",
  access: "org:admin",
  params: orgPath,
  query: NONE,
  body: fields({
    url,
    types,
    room_ids: Type.Optional(roomIds),
    enabled: Type.Optional({ ...enabled, description: "true if absent." }),
  }),
  output: newWebhook,
  outcomes: { created: 201 },
  location: "/v1/orgs/self/webhooks/{webhook_id}",
  errors: ["org_not_found", "quota_exceeded"],
  secretOutput: true,
  audit: "webhook.created",
  example: { body: { url: "https://example.org/hooks/roomd", types: ["sandbox.", "room."] } },
});

export const webhookList = operation({
  name: "webhook_list",
  extension: "webhooks",
  method: "GET",
  path: "/v1/orgs/{org_id}/webhooks",
  summary: "List the organization's webhooks",
  description: "Oldest first.",
  access: "org:admin",
  ofAccount: true,
  params: orgPath,
  query: fields(pageQuery),
  body: null,
  output: named("WebhookPage", fields({ ...page(webhookRecord).properties, warnings: anyWarnings })),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "invalid_cursor"],
  audit: "webhook.listed",
});

export const webhookGet = operation({
  name: "webhook_get",
  extension: "webhooks",
  method: "GET",
  path: "/v1/orgs/{org_id}/webhooks/{webhook_id}",
  summary: "Get a webhook",
  access: "org:admin",
  ofAccount: true,
  params: webhookPath,
  query: NONE,
  body: null,
  output: webhookRecord,
  outcomes: { ok: 200 },
  errors: [...WEBHOOK],
  audit: "webhook.read",
});

export const webhookUpdate = operation({
  name: "webhook_update",
  extension: "webhooks",
  method: "PATCH",
  path: "/v1/orgs/{org_id}/webhooks/{webhook_id}",
  summary: "Change a webhook",
  description:
    "Changes the given fields. A re-enabled webhook continues after its last event, as far back as the audit reaches. With `url`, or `enabled: true`, events that wait for a retry are retried immediately, as if they were new.",
  access: "org:admin",
  params: webhookPath,
  query: NONE,
  body: fields({
    url: Type.Optional(url),
    types: Type.Optional(types),
    room_ids: Type.Optional(roomIds),
    enabled: Type.Optional(enabled),
  }),
  output: webhookRecord,
  outcomes: { ok: 200 },
  errors: [...WEBHOOK],
  audit: "webhook.updated",
  example: { body: { enabled: false } },
});

export const webhookDelete = operation({
  name: "webhook_delete",
  extension: "webhooks",
  method: "DELETE",
  path: "/v1/orgs/{org_id}/webhooks/{webhook_id}",
  summary: "Delete a webhook",
  description: "Events that are not delivered yet are not sent any more.",
  access: "org:admin",
  params: webhookPath,
  query: NONE,
  body: null,
  output: fields({ webhook_id: Type.String(), state: oneOf(["deleted"]) }),
  outcomes: { ok: 200 },
  errors: [...WEBHOOK],
  onFullDisk: true,
  audit: "webhook.deleted",
});

export const webhookRotate = operation({
  name: "webhook_rotate",
  extension: "webhooks",
  method: "POST",
  path: "/v1/orgs/{org_id}/webhooks/{webhook_id}/rotate",
  summary: "Replace a webhook's secret",
  description:
    "Creates a new secret. During the grace period both sign: webhook-signature has two signatures with a space between.",
  access: "org:admin",
  params: webhookPath,
  query: NONE,
  body: fields({
    grace_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_GRACE_SECONDS,
        description: `How long the previous secret also signs; ${DEFAULT_ROTATION_SECONDS} if absent.`,
      }),
    ),
  }),
  output: newWebhook,
  outcomes: { created: 201 },
  errors: [...WEBHOOK],
  secretOutput: true,
  audit: "webhook.rotated",
  example: { body: { grace_seconds: 3600 } },
});

export const webhookDeliveries = operation({
  name: "webhook_deliveries",
  extension: "webhooks",
  method: "GET",
  path: "/v1/orgs/{org_id}/webhooks/{webhook_id}/deliveries",
  summary: "List a webhook's failed and retried deliveries",
  description: `Newest events first. An event that was accepted at the first attempt is not listed: sent_count counts it. Of completed deliveries the newest ${MAX_OVER} are kept.`,
  access: "org:admin",
  ofAccount: true,
  params: webhookPath,
  query: fields(pageQuery),
  body: null,
  output: named("WebhookDeliveryPage", fields({ ...page(deliveryRecord).properties, warnings: anyWarnings })),
  outcomes: { ok: 200 },
  errors: [...WEBHOOK, "invalid_cursor"],
  audit: "webhook.deliveries_listed",
});

export const webhookRedeliver = operation({
  name: "webhook_redeliver",
  extension: "webhooks",
  method: "POST",
  path: "/v1/orgs/{org_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
  summary: "Send an event again",
  description:
    "Also an accepted event: any event that the audit still has. It is attempted immediately, as if it were new.",
  access: "org:admin",
  params: deliveryPath,
  query: NONE,
  body: NONE,
  output: deliveryRecord,
  outcomes: { accepted: 202 },
  errors: [...WEBHOOK, "delivery_not_found", "invalid_state", "quota_exceeded"],
  audit: "webhook.redelivered",
  example: { body: {} },
});

export const webhookTestSend = operation({
  name: "webhook_test",
  extension: "webhooks",
  method: "POST",
  path: "/v1/orgs/{org_id}/webhooks/{webhook_id}/test",
  summary: "Send a test event",
  description:
    "Sends one event of type webhook.test, also to a webhook that is not enabled, and answers with the result. There is one attempt.",
  access: "org:admin",
  params: webhookPath,
  query: NONE,
  body: NONE,
  output: webhookTest,
  outcomes: { ok: 200 },
  errors: [...WEBHOOK, "rate_limited"],
  audit: "webhook.tested",
  example: { body: {} },
});

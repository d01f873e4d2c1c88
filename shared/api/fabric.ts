/** Interface of the fabric: messages between the agents of a room, and the agents. */
import { type Static, Type } from "@sinclair/typebox";
import { AGENT_PATTERN, NAME_PATTERN } from "../ids.ts";
import {
  fields,
  MAX_CURSOR_CHARACTERS,
  NONE,
  nullable,
  oneOf,
  operation,
  page,
  pageQuery,
  record,
  timestamp,
} from "./contract.ts";
import { roomPath } from "./rooms.ts";

export const MAX_PAYLOAD_BYTES = 64 * 1024;
export const MAX_INBOX = 1000;
export const MAX_DESTINATIONS = 1000;
export const MAX_ROOM_AGENTS = 10_000;
export const MAX_TOPICS = 64;
/** Limit for all agents of a room together: every message to a topic is matched against each subscription. */
export const MAX_ROOM_TOPICS = 10_000;
export const MAX_TTL_MS = 604_800_000;
export const MAX_WAIT_MS = 50_000;
export const MAX_REPLY_WAIT_MS = 300_000;
/**
 * Minimum retention of a message_id and a reply, however little space there is; the message_id of a request stays MAX_REPLY_WAIT_MS longer.
 */
export const MESSAGE_ID_KEPT_MS = 300_000;
export const DEFAULT_REPLY_WAIT_MS = 5000;
export const MAX_HEADER_BYTES = 4096;
/** Maximum number of messages in one call. */
export const MAX_BATCH = 256;
/** Maximum number of recipients of all messages of a batch: as many as one message to all agents of a room can have. */
export const MAX_BATCH_RECIPIENTS = 10_000;
/** And to at most this many different topics: each is matched against all subscriptions of the room's agents. */
export const MAX_BATCH_TOPICS = 16;
/** Number of redeliveries of a message that must be acknowledged. */
export const REDELIVERIES = 5;
/** All other agents of the room. */
export const EVERYONE = "*";

export const MESSAGE_KINDS = ["event", "request", "response"] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];

/**
 * State of a message for one recipient:
 *
 *     queued → delivered (handed out) → acked, or read: the recipient's cursor is past it
 *     queued, delivered → undeliverable (never acked after all redeliveries), expired (ttl_ms)
 */
export const DELIVERY_STATES = ["queued", "delivered", "read", "acked", "undeliverable", "expired"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export const agentName = (description: string) =>
  Type.String({ pattern: AGENT_PATTERN, description, examples: ["worker-1"] });
export const TOPIC_PATTERN = "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$";
/** Pattern for topics in an agent's subscriptions. */
export const SUBSCRIPTION_PATTERN = "^(>|([A-Za-z0-9_-]+|\\*)(\\.([A-Za-z0-9_-]+|\\*))*(\\.>)?)$";
/** An empty value counts as absent; the verb checks the pattern of other values. */
const orNone = (pattern: string, description: string) =>
  Type.Optional(nullable(Type.String({ maxLength: 256, description: `${description} Matches ${pattern}.` })));
const messageId = Type.String({ pattern: NAME_PATTERN, description: "The message's name, unique in the room." });

const content = {
  payload: Type.Optional(Type.Unknown({ description: "Any JSON, up to 64 KiB as text." })),
  payload_b64: Type.Optional(Type.String({ maxLength: 1024 * 1024, description: "Bytes, up to 64 KiB." })),
  headers: Type.Optional(
    Type.Record(Type.String({ pattern: "^[A-Za-z0-9_.-]{1,128}$" }), Type.String(), {
      additionalProperties: false,
      maxProperties: 32,
      description: "Metadata of the message, up to 4 KiB.",
    }),
  ),
  ack_required: Type.Optional(
    Type.Boolean({
      description: "Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable.",
    }),
  ),
  ttl_ms: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_TTL_MS,
      description: "The message expires unread after this time; never if absent.",
    }),
  ),
};
const source = Type.Optional(agentName("The sender; in a guest always the sandbox's own agent."));

export const delivery = fields({ agent_id: Type.String(), state: oneOf(DELIVERY_STATES) });

const message = record("Message", {
  message_id: messageId,
  seq: Type.Integer({ description: "Place in the room's order." }),
  source: Type.String(),
  destination: nullable(Type.String()),
  destinations: nullable(Type.Array(Type.String())),
  topic: nullable(Type.String()),
  kind: oneOf(MESSAGE_KINDS),
  payload: Type.Unknown(),
  payload_b64: nullable(Type.String()),
  size_bytes: Type.Integer(),
  headers: Type.Record(Type.String(), Type.String()),
  reply_to: nullable(Type.String()),
  ack_required: Type.Boolean(),
  created_at: timestamp,
  expires_at: nullable(timestamp),
  attempt: nullable(Type.Integer({ description: "In an inbox: how often it has been delivered, this time included." })),
});
export type MessageRecord = Static<typeof message>;

const receipt = {
  message_id: messageId,
  seq: Type.Integer(),
  state: oneOf(DELIVERY_STATES, { description: "The state at the recipient that is furthest behind." }),
  deliveries: Type.Array(delivery),
  recipient_count: Type.Integer(),
};
const sent = record("SentMessage", { ...receipt, reply: Type.Optional(nullable(message)) });
const messagePath = fields({ ...roomPath.properties, message_id: messageId });
const agentPath = fields({ ...roomPath.properties, agent_id: agentName("The agent.") });

/** Fields of a message when it is sent. */
const sending = {
  source,
  destination: orNone(`* or ${AGENT_PATTERN}`, "The recipient; * for all others."),
  destinations: Type.Optional(
    nullable(
      Type.Array(agentName("A recipient."), {
        maxItems: MAX_DESTINATIONS,
        uniqueItems: true,
        description: "Several recipients.",
      }),
    ),
  ),
  topic: orNone(TOPIC_PATTERN, "Words separated by dots. The message goes to the topic's subscribers."),
  kind: Type.Optional(
    oneOf(MESSAGE_KINDS, { description: "event if absent; with wait_reply request, with reply_to response." }),
  ),
  reply_to: Type.Optional(
    Type.String({ ...messageId, description: "message_id of the message that this replies to." }),
  ),
  message_id: Type.Optional(messageId),
  ...content,
};

const sendErrors = [
  "room_not_found",
  "room_destroying",
  "source_mismatch",
  "agent_not_found",
  "message_not_found",
  "agent_unavailable",
  "already_exists",
  "conflicting_fields",
  "payload_too_large",
  "inbox_full",
  "quota_exceeded",
] as const;

export const agentSend = operation({
  name: "agent_send",
  method: "POST",
  path: "/v1/rooms/{room_id}/messages",
  summary: "Send a message",
  description:
    "To one agent, to several, to the subscribers of a topic, or to * for all others. An accepted message is on disk and is never dropped. Sending the same message_id and body again sends nothing new. With wait_reply, to one agent, the answer is the reply. When the organization's messages take too much space, messages that no recipient still has to read are deleted, and their message_id with them: a message_id and a reply are kept for at least 5 minutes, the message_id of a request for 10.",
  access: "fabric:write",
  params: roomPath,
  query: NONE,
  body: fields({
    ...sending,
    wait_reply: Type.Optional(Type.Boolean({ description: "Wait for the reply of its one recipient." })),
    timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_REPLY_WAIT_MS,
        code: "timeout_out_of_range",
        description: "Longest wait for the reply; 5000 if absent.",
      }),
    ),
  }),
  output: sent,
  outcomes: { accepted: 202, known: 200, replied: 200 },
  errors: [...sendErrors, "deadlock_detected", "reply_timeout", "shutting_down"],
  audit: "message.sent",
  example: {
    body: { source: "planner", destination: "worker-1", kind: "request", payload: { path: "/results/report.txt" } },
  },
});

export const messageSendMany = operation({
  name: "message_send_many",
  extension: "messages",
  method: "POST",
  path: "/v1/rooms/{room_id}/messages/batch",
  summary: "Send many messages",
  description:
    "Sent in order, all or none: an error names the position of the invalid message, and none is sent. No reply is awaited. Each counts as a call for the key's rate limit, and has its own audit record.",
  access: "fabric:write",
  params: roomPath,
  query: NONE,
  body: fields({
    messages: Type.Array(
      record("MessageToSend", {
        ...sending,
        kind: Type.Optional(oneOf(MESSAGE_KINDS, { description: "event if absent; with reply_to response." })),
      }),
      { minItems: 1, maxItems: MAX_BATCH, description: "In the order of delivery." },
    ),
  }),
  many: "messages",
  output: fields({ messages: Type.Array(record("MessageReceipt", receipt), { description: "In the same order." }) }),
  outcomes: { accepted: 202, known: 200 },
  errors: [...sendErrors, "shutting_down"],
  audit: "message.sent",
  example: {
    body: {
      messages: [
        { source: "planner", destination: "worker-1", payload: { task: "/tasks/1.md" } },
        { source: "planner", destination: "worker-1", payload: { task: "/tasks/2.md" } },
      ],
    },
  },
});

export const agentWait = operation({
  name: "agent_wait",
  method: "GET",
  path: "/v1/rooms/{room_id}/messages",
  summary: "Read an inbox, or the room's messages",
  description:
    "With agent_id: the agent's inbox, oldest first. `after` marks everything up to it as read; messages that need an ack stay until acked. Without agent_id: all messages of the room. With wait_ms it waits for the first. Messages that topic, kind and source exclude stay in the inbox, regardless of `after`. When the organization's messages take too much space, messages that no recipient still has to read or may fetch again are deleted; reading the room from before them is then history_gone.",
  access: "fabric:read",
  params: roomPath,
  query: fields({
    agent_id: Type.Optional(agentName("Whose inbox.")),
    topic: Type.Optional(Type.String({ maxLength: 256, description: "A topic, or a pattern as for subscriptions." })),
    kind: Type.Optional(oneOf(MESSAGE_KINDS, { description: "Only messages of this kind." })),
    source: Type.Optional(agentName("Only messages from this agent.")),
    after: Type.Optional(Type.Integer({ minimum: 0, description: "next_after of the previous answer." })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: "100 if absent." })),
    wait_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_WAIT_MS,
        code: "timeout_out_of_range",
        description: "How long to wait for the first; 0 if absent.",
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        maxLength: MAX_CURSOR_CHARACTERS,
        description: "next_cursor of the previous page, instead of after.",
      }),
    ),
  }),
  body: null,
  output: fields({ ...page(message).properties, next_after: Type.Integer() }),
  outcomes: { ok: 200 },
  errors: [
    "room_not_found",
    "source_mismatch",
    "agent_unavailable",
    "invalid_cursor",
    "history_gone",
    "room_destroying",
    "quota_exceeded",
    "shutting_down",
  ],
  audit: "message.read",
});

export const messageGet = operation({
  name: "message_get",
  extension: "messages",
  method: "GET",
  path: "/v1/rooms/{room_id}/messages/{message_id}",
  summary: "Get a message and its delivery state",
  access: "fabric:read",
  params: messagePath,
  query: NONE,
  body: null,
  output: fields({
    ...message.properties,
    state: oneOf(DELIVERY_STATES),
    deliveries: Type.Array(delivery),
    recipient_count: Type.Integer(),
  }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "message_not_found"],
  audit: "message.read",
});

export const messageAck = operation({
  name: "message_ack",
  extension: "messages",
  method: "POST",
  path: "/v1/rooms/{room_id}/messages/{message_id}/ack",
  summary: "Acknowledge a message",
  description: "The message leaves the agent's inbox. A second call changes nothing.",
  access: "fabric:write",
  params: messagePath,
  query: NONE,
  body: fields({ agent_id: Type.Optional(agentName("The recipient that has it.")) }),
  output: fields({ message_id: messageId, seq: Type.Integer(), ...delivery.properties }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "message_not_found", "source_mismatch", "room_destroying"],
  audit: "message.acked",
  onFullDisk: true,
  example: { body: { agent_id: "worker-1" } },
});

export const messageReply = operation({
  name: "message_reply",
  extension: "messages",
  method: "POST",
  path: "/v1/rooms/{room_id}/messages/{message_id}/reply",
  summary: "Reply to a message",
  description: "Sends a response to the sender of the message, and acknowledges it.",
  access: "fabric:write",
  params: messagePath,
  query: NONE,
  body: fields({
    source,
    reply_message_id: Type.Optional(
      Type.String({ pattern: NAME_PATTERN, description: "The message_id of the reply." }),
    ),
    ...content,
  }),
  output: fields(receipt),
  outcomes: { accepted: 202, known: 200 },
  errors: [...sendErrors],
  audit: "message.replied",
  example: { body: { source: "worker-1", payload: { ok: true } } },
});

export const agentSubscribe = operation({
  name: "agent_subscribe",
  extension: "messages",
  method: "PUT",
  path: "/v1/rooms/{room_id}/agents/{agent_id}/subscriptions",
  summary: "Set the topics that an agent subscribes to",
  description:
    "In a pattern * stands for one word, and > at the end for all that follow. The list replaces the earlier one.",
  access: "fabric:write",
  params: agentPath,
  query: NONE,
  body: fields({
    topics: Type.Array(
      Type.String({
        pattern: SUBSCRIPTION_PATTERN,
        maxLength: 256,
      }),
      { maxItems: MAX_TOPICS, uniqueItems: true },
    ),
  }),
  output: fields({ agent_id: Type.String(), topics: Type.Array(Type.String()) }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "source_mismatch", "agent_unavailable", "room_destroying", "quota_exceeded"],
  audit: "message.subscribed",
  example: { body: { topics: ["build.*"] } },
});

const presence = record("Agent", {
  agent_id: Type.String(),
  sandbox_state: nullable(Type.String({ description: "Null for an agent outside the room's sandboxes." })),
  last_seen_at: nullable(timestamp),
  inbox_depth: Type.Integer(),
  waiting_on: Type.Array(
    fields({ type: oneOf(["reply", "barrier", "inbox"]), id: nullable(Type.String({ description: "Its name." })) }),
  ),
  topics: Type.Array(Type.String()),
});

export const agentList = operation({
  name: "agent_list",
  extension: "messages",
  method: "GET",
  path: "/v1/rooms/{room_id}/agents",
  summary: "List the agents of a room",
  access: "fabric:read",
  params: roomPath,
  query: fields(pageQuery),
  body: null,
  output: page(presence),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "invalid_cursor"],
  audit: "message.agents_listed",
});

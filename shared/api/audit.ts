/** Interface of the audit. */
import { type Static, Type } from "@sinclair/typebox";
import {
  fields,
  MAX_CURSOR_CHARACTERS,
  named,
  nullable,
  oneOf,
  operation,
  page,
  record,
  timestamp,
} from "./contract.ts";
import { moment } from "./moment.ts";
import { actor, anyWarnings, roomPath } from "./rooms.ts";

export const OUTCOMES = ["success", "denied", "error"] as const;
export const SOURCES = ["rest", "mcp", "vsock", "ssh", "web", "cli", "reconciler"] as const;
export type Source = (typeof SOURCES)[number];
export const DEFAULT_AUDIT_PAGE = 200;

export const auditRecord = record("AuditRecord", {
  audit_id: Type.String(),
  seq: Type.Integer({ description: "Position in the organization's chain." }),
  event: Type.String(),
  outcome: oneOf(OUTCOMES),
  at: timestamp,
  org_id: nullable(Type.String()),
  room_id: nullable(Type.String()),
  room_uid: nullable(Type.String()),
  agent_id: nullable(Type.String()),
  sandbox_id: nullable(Type.String()),
  actor: fields({ ...actor.properties, name: Type.String() }),
  source: oneOf(SOURCES),
  request_id: nullable(Type.String()),
  ip: nullable(Type.String()),
  status: nullable(Type.Integer()),
  error_code: nullable(Type.String()),
  duration_ms: nullable(Type.Number()),
  details: Type.Record(Type.String(), Type.Unknown()),
  prev_hash: Type.String(),
  hash: Type.String(),
});
export type AuditRecord = Static<typeof auditRecord>;

const filters = {
  since: moment("RFC 3339 or unix seconds."),
  until: moment("RFC 3339 or unix seconds."),
  event: Type.Optional(Type.String({ maxLength: 128, description: "Prefix of the event's name." })),
  agent_id: Type.Optional(Type.String({ maxLength: 128, description: "Only actions of this agent, or on it." })),
  outcome: Type.Optional(oneOf(OUTCOMES, { description: "Only records with this outcome." })),
  source: Type.Optional(oneOf(SOURCES, { description: "Only records from this source." })),
  actor_id: Type.Optional(
    Type.String({ maxLength: 128, description: "Only actions of this key, person or sandbox, by actor.id." }),
  ),
  request_id: Type.Optional(Type.String({ maxLength: 128, description: "Only records of this request." })),
  trace_id: Type.Optional(Type.String({ maxLength: 128, description: "Only records of this trace." })),
  audit_id: Type.Optional(Type.String({ maxLength: 128, description: "Only this record." })),
  reads: Type.Optional(
    Type.Boolean({
      description: "false: without calls that only read, unless they were refused or failed; true if absent.",
    }),
  ),
};

/** Includes destroyed rooms, of which only the name remains. */
const ofRoom = {
  room_id: Type.Optional(Type.String({ maxLength: 128, description: "Only rooms of this name, destroyed ones too." })),
};

const query = {
  ...filters,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: "200 if absent." })),
  cursor: Type.Optional(
    Type.String({ maxLength: MAX_CURSOR_CHARACTERS, description: "next_cursor of the previous page, unchanged." }),
  ),
  order: Type.Optional(oneOf(["asc", "desc"], { description: "desc, the newest first, if absent." })),
};

const orgPath = fields({ org_id: Type.String({ maxLength: 64, description: "The organization, or self." }) });
const follow = Type.Optional(Type.Boolean({ description: "Whether to wait for new events; true if absent." }));
const afterSeq = fields({
  after: Type.Optional(
    Type.Integer({ minimum: 0, description: "seq of the last event you have; if absent, only new events are sent." }),
  ),
  follow,
});
const afterCursor = fields({
  after: Type.Optional(
    Type.String({
      maxLength: MAX_CURSOR_CHARACTERS,
      description: "Cursor of the last event received, unchanged; 0: from the first that is kept; absent: from now on.",
    }),
  ),
  follow,
});
const orgEvent = record("OrgEvent", {
  ...auditRecord.properties,
  cursor: Type.String({
    description: "Position after this event, to continue from; also its id. Opaque.",
  }),
});
const records = named("AuditRecordPage", fields({ ...page(auditRecord).properties, warnings: anyWarnings }));
const LINES =
  "With `Accept: application/x-ndjson` all matching records, or `limit` of them, are streamed as lines of JSON.";
const OF_ALL_HOSTS =
  "A host that does not respond is left out, and named in `warnings`; among lines, in those of a ping.";
const summary = record("AuditSummary", {
  total: Type.Integer(),
  from_at: nullable(timestamp),
  to_at: nullable(timestamp),
  outcomes: fields({ success: Type.Integer(), denied: Type.Integer(), error: Type.Integer() }),
  events: Type.Array(fields({ event: Type.String(), count: Type.Integer() }), {
    description: "The most frequent first.",
  }),
  agents: Type.Array(fields({ agent_id: Type.String(), count: Type.Integer() })),
  errors: Type.Array(fields({ code: Type.String(), count: Type.Integer() })),
  text: Type.String({ description: "The same as one paragraph of text." }),
  warnings: anyWarnings,
});
const chain = {
  ok: Type.Boolean(),
  from_seq: Type.Integer({ description: "The first record that is still kept; 0 if there is none." }),
  to_seq: Type.Integer(),
  broken_at: nullable(Type.Integer({ description: "The first record that breaks the chain." })),
};
const verdict = record("AuditVerdict", chain);
const verdictOfOrg = record("OrgAuditVerdict", {
  ...chain,
  hosts: Type.Optional(
    Type.Array(record("HostChain", { host: Type.String(), ...chain }), {
      description:
        "With several hosts: the chain of each host that answered. ok is then true if all of these are intact, and the numbers are those of the first broken chain, or else of the host that was called.",
    }),
  ),
  warnings: anyWarnings,
});

export const auditList = operation({
  name: "audit_list",
  extension: "audit.export",
  method: "GET",
  path: "/v1/rooms/{room_id}/audit",
  summary: "List a room's audit",
  description: LINES,
  access: "audit:read",
  params: roomPath,
  query: fields(query),
  body: null,
  output: records,
  outcomes: { ok: 200 },
  bytesOutput: ["application/x-ndjson"],
  errors: ["room_not_found", "invalid_cursor", "rate_limited"],
  audit: "audit.listed",
});

export const orgAuditList = operation({
  name: "org_audit_list",
  extension: "audit.export",
  method: "GET",
  path: "/v1/orgs/{org_id}/audit",
  summary: "List the organization's audit",
  description: `${LINES} ${OF_ALL_HOSTS}`,
  access: "audit:read",
  params: orgPath,
  query: fields({ ...query, ...ofRoom }),
  body: null,
  output: records,
  outcomes: { ok: 200 },
  bytesOutput: ["application/x-ndjson"],
  errors: ["org_not_found", "invalid_cursor", "rate_limited"],
  audit: "audit.listed",
});

export const auditSummary = operation({
  name: "audit_summary",
  extension: "audit.summary",
  method: "GET",
  path: "/v1/rooms/{room_id}/audit/summary",
  summary: "Sum up a room's audit",
  access: "audit:read",
  params: roomPath,
  query: fields(filters),
  body: null,
  output: summary,
  outcomes: { ok: 200 },
  errors: ["room_not_found"],
  audit: "audit.summarized",
});

export const orgAuditSummary = operation({
  name: "org_audit_summary",
  extension: "audit.summary",
  method: "GET",
  path: "/v1/orgs/{org_id}/audit/summary",
  summary: "Sum up the organization's audit",
  access: "audit:read",
  params: orgPath,
  query: fields({ ...filters, ...ofRoom }),
  body: null,
  output: summary,
  outcomes: { ok: 200 },
  errors: ["org_not_found"],
  audit: "audit.summarized",
});

export const auditVerify = operation({
  name: "audit_verify",
  extension: "audit.verify",
  method: "GET",
  path: "/v1/rooms/{room_id}/audit/verify",
  summary: "Verify the chain that a room's audit is part of",
  description:
    "The records of all rooms of an organization form one chain. A room's records are intact if the chain is. To a key that is bound, the part of it from the room's first record to its last.",
  access: "audit:read",
  params: roomPath,
  query: fields({}),
  body: null,
  output: verdict,
  outcomes: { ok: 200 },
  errors: ["room_not_found"],
  audit: "audit.verified",
});

export const orgAuditVerify = operation({
  name: "org_audit_verify",
  extension: "audit.verify",
  method: "GET",
  path: "/v1/orgs/{org_id}/audit/verify",
  summary: "Verify the organization's audit chain",
  access: "audit:read",
  params: orgPath,
  query: fields({}),
  body: null,
  output: verdictOfOrg,
  outcomes: { ok: 200 },
  errors: ["org_not_found"],
  audit: "audit.verified",
});

const EVENTS =
  "The audit's records as they arrive, in order. An interrupted stream continues after the last event, named by Last-Event-ID or `after`. Server-sent events if Accept requests `text/event-stream`, else lines of JSON. A client that does not keep up is disconnected, and misses no event if it reconnects.";

export const roomEvents = operation({
  name: "room_events",
  extension: "events",
  method: "GET",
  path: "/v1/rooms/{room_id}/events",
  summary: "Stream a room's events",
  description: `${EVENTS} An event's id is its seq. The stream ends when the room is destroyed.`,
  access: "audit:read",
  params: roomPath,
  query: afterSeq,
  headers: ["last_event_id"],
  body: null,
  output: auditRecord,
  outcomes: { ok: 200 },
  bytesOutput: ["text/event-stream", "application/x-ndjson"],
  errors: ["room_not_found", "invalid_cursor", "history_gone", "rate_limited"],
  audit: "audit.followed",
  example: { query: { follow: "false" } },
});

export const orgEvents = operation({
  name: "org_events",
  extension: "events",
  method: "GET",
  path: "/v1/orgs/{org_id}/events",
  summary: "Stream the organization's events",
  description: `${EVENTS} An event's id is opaque, and equal to its field \`cursor\`. With several hosts, the records of each host are in order. A host that does not respond is named in the \`warnings\` of a ping; its events follow once it responds again.`,
  access: "audit:read",
  params: orgPath,
  query: afterCursor,
  headers: ["last_event_id"],
  body: null,
  output: orgEvent,
  outcomes: { ok: 200 },
  bytesOutput: ["text/event-stream", "application/x-ndjson"],
  errors: ["org_not_found", "invalid_cursor", "history_gone", "rate_limited"],
  audit: "audit.followed",
  example: { query: { follow: "false" } },
});

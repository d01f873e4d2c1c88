/** Interface of the overview of a room: its waits, and a timeline of its events. */
import { type Static, Type } from "@sinclair/typebox";
import { LANES, TIMELINE_TYPES } from "../../timeline/item.ts";
import { OUTCOMES } from "../audit.ts";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "../contract.ts";
import { moment } from "../moment.ts";
import { roomPath } from "../rooms.ts";

export const MAX_WAITS = 1000;
export const MAX_WAITED_FOR = 100;
export const DEFAULT_TIMELINE_PAGE = 200;
export const WAIT_TYPES = ["reply", "barrier", "inbox", "command"] as const;

export const wait = record("Wait", {
  agent_id: Type.String({ description: "The waiting agent." }),
  type: oneOf(WAIT_TYPES),
  id: nullable(Type.String({ description: "The message, the barrier or the execution; null for an inbox." })),
  on: Type.Array(Type.String(), {
    maxItems: MAX_WAITED_FOR,
    description: `Agents that it waits for, ${MAX_WAITED_FOR} of them at most; empty for an inbox and a command.`,
  }),
  since: timestamp,
  held: Type.Boolean({ description: "Whether a call of the agent is waiting for it at this moment." }),
  about: Type.String({ description: "Short description: a topic, a kind, a command." }),
});
export type Wait = Static<typeof wait>;

const cycle = fields({
  agents: Type.Array(Type.String(), { description: "Each waits for the next, the last for the first." }),
  text: Type.String({ description: "The same as a sentence." }),
});
export type Cycle = Static<typeof cycle>;

export const roomWaits = operation({
  name: "room_waits",
  extension: "waits",
  method: "GET",
  path: "/v1/rooms/{room_id}/waits",
  summary: "Show the waits and deadlocks of a room",
  description: `Calls that wait now, and waits without a call: requests without a reply, from when they were sent, and open barriers, from when they were opened. A request to a topic is answered by the first reply, a request to several agents by a reply of each. Commands are those started by the service; those of SSH sessions are known to the guest alone. A cycle is a ring of agents each of which is blocked by the next; if one of several agents is enough, none of them is part of a cycle. The oldest ${MAX_WAITS} waits are listed.`,
  access: "fabric:read",
  params: roomPath,
  query: NONE,
  body: null,
  output: fields({
    room_id: Type.String(),
    at: timestamp,
    waits: Type.Array(wait, { maxItems: MAX_WAITS, description: "The oldest first." }),
    cycles: Type.Array(cycle, { description: "One of the shortest rings of each deadlocked group." }),
    truncated: Type.Boolean({ description: "Whether there are more waits than are listed." }),
    text: Type.String({ description: "The same as one paragraph of text." }),
  }),
  outcomes: { ok: 200 },
  errors: ["room_not_found"],
  audit: "room.waits_read",
});

const item = record("TimelineItem", {
  seq: nullable(Type.Integer({ description: "Of the audit record; null while in progress." })),
  lane: oneOf(LANES, { description: "Lane in which it is drawn: its agent's, or a shared resource's." }),
  agent_id: nullable(Type.String()),
  kind: oneOf(["span", "mark"]),
  type: oneOf(TIMELINE_TYPES),
  at: timestamp,
  until: nullable({ ...timestamp, description: "The end of a span; null for a mark and while in progress." }),
  outcome: oneOf(OUTCOMES),
  title: Type.String({ maxLength: 200, description: "One line." }),
  to: Type.Array(Type.String(), { description: "Its recipients, 16 agents at most." }),
  ref: nullable(fields({ type: Type.String(), id: Type.String() })),
  exit_code: nullable(Type.Integer()),
  trace_id: nullable(
    Type.String({ pattern: "^[0-9a-f]{32}$", description: "The trace that it is a part of, if any." }),
  ),
});

const TYPE_LIST = `(${TIMELINE_TYPES.join("|")})`;

export const roomTimeline = operation({
  name: "room_timeline",
  extension: "timeline",
  method: "GET",
  path: "/v1/rooms/{room_id}/timeline",
  summary: "Show a room's history as spans and marks",
  description:
    "From the room's audit, in its order, without calls that only read and without actions of people on the web pages. A span lasted from `at` to `until`; standby and resume are a mark each. Waits are those of calls that waited.",
  access: "audit:read",
  params: roomPath,
  query: fields({
    since: moment("RFC 3339 or unix seconds."),
    until: moment("RFC 3339 or unix seconds."),
    agent_id: Type.Optional(Type.String({ maxLength: 128, description: "Only actions of this agent, or on it." })),
    types: Type.Optional(
      Type.String({
        pattern: `^${TYPE_LIST}(,${TYPE_LIST})*$`,
        maxLength: 256,
        description: "Only these types, separated by commas.",
      }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: `${DEFAULT_TIMELINE_PAGE} if absent.` }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: 1024, description: "next_cursor of the previous page, unchanged." }),
    ),
    order: Type.Optional(oneOf(["asc", "desc"], { description: "desc, the newest first, if absent." })),
  }),
  body: null,
  output: fields({
    room_id: Type.String(),
    at: timestamp,
    items: Type.Array(item),
    open: Type.Array(item, {
      description:
        "On the first page: running commands, waits of agents, also between their calls, and sandboxes in standby.",
    }),
    next_cursor: nullable(Type.String()),
    trace_url: nullable(
      Type.String({
        description: "URL of the page that shows a trace, with {trace_id} for its id, if the service has one.",
      }),
    ),
  }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "invalid_cursor"],
  audit: "room.timeline_read",
});

/** Interface of barriers: points that the agents of a room pass together. */
import { type Static, Type } from "@sinclair/typebox";
import { NAME_PATTERN } from "../ids.ts";
import { fields, NONE, nullable, oneOf, operation, page, pageQuery, record, timestamp } from "./contract.ts";
import { agentName } from "./fabric.ts";
import { roomPath } from "./rooms.ts";

export const MAX_PARTIES = 1000;
export const MAX_ROOM_BARRIERS = 10_000;
/** Maximum bytes of all of a room's barriers, with the names of their expected agents. */
export const MAX_ROOM_BARRIERS_BYTES = 64 * 1024 ** 2;
export const MAX_BARRIER_WAIT_MS = 300_000;
export const DEFAULT_BARRIER_WAIT_MS = 30_000;

export const BARRIER_STATES = ["waiting", "released", "broken", "cancelled"] as const;
export type BarrierState = (typeof BARRIER_STATES)[number];

const barrierId = Type.String({ pattern: NAME_PATTERN, description: "The barrier's name in the room." });
const agents = (description: string) =>
  Type.Array(agentName("An agent."), { minItems: 1, maxItems: MAX_PARTIES, uniqueItems: true, description });

const standing = {
  barrier_id: barrierId,
  generation: Type.Integer({ description: "1 for the first; each release is followed by the next." }),
  state: oneOf(BARRIER_STATES),
  parties: Type.Integer(),
  arrived: Type.Array(Type.String()),
  missing: Type.Array(Type.String({ description: "Participants that have not arrived, if participants are named." })),
};
const barrier = record("Barrier", {
  ...standing,
  participants: nullable(Type.Array(Type.String())),
  opened_at: timestamp,
  ended_at: nullable(timestamp),
});
export type BarrierRecord = Static<typeof barrier>;
const barrierPath = fields({ ...roomPath.properties, barrier_id: barrierId });

export const barrierArrive = operation({
  name: "barrier_arrive",
  method: "POST",
  path: "/v1/rooms/{room_id}/barriers",
  summary: "Arrive at a barrier, and wait until all have",
  description:
    "The first arrival opens the barrier and sets its number of parties. Arriving again counts as the same arrival, also after a timeout. After the release the next arrival opens the next generation, unless generation names an earlier one.",
  access: "fabric:write",
  params: roomPath,
  query: NONE,
  body: fields({
    barrier_id: barrierId,
    agent_id: Type.Optional(agentName("The arriving agent; in a guest always the sandbox's own.")),
    arrivals: Type.Optional(agents("Several agents that arrive together.")),
    arrivals_json: Type.Optional(Type.String({ maxLength: 256 * 1024, description: "The same as a JSON string." })),
    parties: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_PARTIES,
        description: "How many must arrive. If absent: the number of participants, else of arrivals.",
      }),
    ),
    participants: Type.Optional(agents("The agents that must arrive. The barrier breaks when one of them is gone.")),
    generation: Type.Optional(
      Type.Integer({ minimum: 1, description: "The generation to wait for, if it may already be over." }),
    ),
    timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_BARRIER_WAIT_MS,
        code: "timeout_out_of_range",
        description: "Longest wait for the others; 30 000 if absent. 0: do not wait.",
      }),
    ),
  }),
  output: fields({ ...standing, waited_ms: Type.Integer(), released_at: nullable(timestamp) }),
  outcomes: { released: 200, waiting: 202 },
  errors: [
    "room_not_found",
    "room_destroying",
    "source_mismatch",
    "agent_not_found",
    "agent_unavailable",
    "barrier_not_found",
    "barrier_timeout",
    "barrier_broken",
    "barrier_cancelled",
    "barrier_parties_mismatch",
    "conflicting_fields",
    "deadlock_detected",
    "quota_exceeded",
    "shutting_down",
  ],
  audit: "barrier.arrived",
  example: { body: { barrier_id: "merged", agent_id: "planner", parties: 2, timeout_ms: 0 } },
});

export const barrierList = operation({
  name: "barrier_list",
  extension: "barriers",
  method: "GET",
  path: "/v1/rooms/{room_id}/barriers",
  summary: "List a room's barriers",
  description: "The newest generation of each.",
  access: "fabric:read",
  params: roomPath,
  query: fields(pageQuery),
  body: null,
  output: page(barrier),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "invalid_cursor"],
  audit: "barrier.listed",
});

export const barrierGet = operation({
  name: "barrier_get",
  extension: "barriers",
  method: "GET",
  path: "/v1/rooms/{room_id}/barriers/{barrier_id}",
  summary: "Get a barrier's newest generation",
  access: "fabric:read",
  params: barrierPath,
  query: NONE,
  body: null,
  output: barrier,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "barrier_not_found"],
  audit: "barrier.read",
});

export const barrierCancel = operation({
  name: "barrier_cancel",
  extension: "barriers",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/barriers/{barrier_id}",
  summary: "Cancel a barrier",
  description: "Waiting calls fail with barrier_cancelled. The next arrival opens the next generation.",
  access: "fabric:write",
  params: barrierPath,
  query: NONE,
  body: null,
  output: barrier,
  outcomes: { cancelled: 200 },
  errors: ["room_not_found", "barrier_not_found", "room_destroying"],
  audit: "barrier.cancelled",
});

/** Interface of the summary of an organization's rooms: activity, waits and cost of each. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, page, record, timestamp } from "../contract.ts";
import { anyWarnings, labels, ROOM_STATES, roomHost, roomId, roomQuery } from "../rooms.ts";

/** Older days of a room are not included in the sum. */
export const MAX_COST_DAYS = 366;

const cost = fields({
  sandbox_seconds: Type.Number({ description: "Time in which its sandboxes were running." }),
  credits: Type.Number({ description: "By the current price table; 0 if nothing has a price." }),
});

const glance = record("RoomGlance", {
  room_id: roomId,
  room_uid: Type.String(),
  host: roomHost,
  state: oneOf(ROOM_STATES),
  labels,
  agents: Type.Integer({ description: "Agents that are not gone, with or without a sandbox." }),
  running: Type.Integer({ description: "Running sandboxes." }),
  blocked: Type.Integer({
    description: "Agents that wait for a reply or at a barrier now, as listed by room_waits.",
  }),
  in_circle: Type.Boolean({
    description: "Whether some of them wait for each other, so that none can continue alone.",
  }),
  truncated: Type.Boolean({
    description: "Whether there are more waits than were examined: then more can be blocked.",
  }),
  messages_last_minute: Type.Integer({ description: "Messages that were accepted in the last 60 s, on this host." }),
  drive: fields({
    used_bytes: Type.Integer({ description: "0 if the drive cannot be read now." }),
    limit_bytes: Type.Integer(),
  }),
  cost: nullable({
    ...cost,
    description: `Since the room was made, in its last ${MAX_COST_DAYS} days. On a day with very many rooms and agents, not all cost is attributed to rooms. Null for a key without usage:read, and for a key that is bound to an agent.`,
  }),
  created_at: timestamp,
  expires_at: nullable(timestamp),
  warnings: anyWarnings,
});
export type RoomGlance = Static<typeof glance>;

export const roomOverview = operation({
  name: "room_overview",
  extension: "room_overview",
  method: "GET",
  path: "/v1/overview/rooms",
  summary: "Show rooms at a glance",
  description:
    "The rooms of room_list, in its order, each with its active and waiting agents, its messages and its cost. A key that is bound to an agent gets the waits that it sees by room_waits.",
  access: "rooms:read",
  params: NONE,
  query: roomQuery,
  body: null,
  output: fields({ ...page(glance).properties, org_id: Type.String(), at: timestamp, warnings: anyWarnings }),
  outcomes: { ok: 200 },
  errors: ["invalid_cursor"],
  audit: "room.overview_read",
});

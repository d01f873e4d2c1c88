/** Interface of current resource usage. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "../contract.ts";
import { anyWarnings, roomId } from "../rooms.ts";
import { agentId, SANDBOX_STATES } from "../sandboxes.ts";

/** Sandboxes that have not failed come first. */
export const MAX_TOP = 1000;
/** Maximum number of listed owners of event loop time. */
export const MAX_LOOP_OWNERS = 20;

const guests = "Null while it has no virtual machine.";

const item = record("TopItem", {
  room_id: roomId,
  agent_id: agentId,
  sandbox_id: Type.String(),
  state: oneOf(SANDBOX_STATES),
  ready_at: nullable(timestamp),
  cpu: fields({
    vcpu_count: Type.Integer(),
    used_seconds: nullable(Type.Number({ description: `Since it was started. ${guests}` })),
  }),
  memory: fields({
    memory_mib: Type.Integer(),
    resident_bytes: nullable(Type.Integer({ description: `Of the host's memory. ${guests}` })),
  }),
  disk: fields({ used_bytes: Type.Integer() }),
  egress: fields({
    sent_bytes: Type.Integer(),
    received_bytes: Type.Integer(),
    open_connections: Type.Integer(),
  }),
});

export const topGet = operation({
  name: "top_get",
  extension: "top",
  method: "GET",
  path: "/v1/top",
  summary: "Show the current resource usage of sandboxes",
  description:
    "For all sandboxes that the key can see, in one answer. Times and bytes are cumulative: the difference between two answers is the usage between them. `host` is for unbound keys with `org:admin`, and without a key for the host itself, as `/metrics` is.",
  access: "sandboxes:read",
  openToHost: true,
  params: NONE,
  query: fields({ room_id: Type.Optional(Type.String({ description: "Only the sandboxes of this room." })) }),
  body: null,
  output: fields({
    items: Type.Array(item, { maxItems: MAX_TOP }),
    not_shown: Type.Integer({ description: `Sandboxes beyond ${MAX_TOP}.` }),
    host: nullable(
      record("TopHost", {
        uptime_seconds: Type.Integer({ description: "Of the service." }),
        rooms: Type.Integer(),
        sandboxes: Type.Record(Type.String(), Type.Integer(), { description: "Of all organizations, by state." }),
        requests: Type.Integer({ description: "Answered since the service started." }),
        cpu: fields({ cores: Type.Integer(), busy_seconds: Type.Number(), idle_seconds: Type.Number() }),
        memory: record("HostMemory", {
          size_bytes: Type.Integer(),
          available_bytes: Type.Integer(),
          promised_bytes: Type.Integer({ description: "To sandboxes." }),
          resident_bytes: Type.Integer({ description: "In use by sandboxes." }),
        }),
        disk: fields({ size_bytes: Type.Integer(), free_bytes: Type.Integer() }),
        loop: record("HostLoop", {
          busy_seconds: Type.Number({ description: "Of the service's event loop." }),
          owners: Type.Array(
            fields({
              owner: Type.String({
                description: "org:ID, net for clients without a key, host for the service itself.",
              }),
              busy_seconds: Type.Number(),
            }),
            { maxItems: MAX_LOOP_OWNERS, description: "The owners with the highest usage." },
          ),
          waiting: Type.Integer({ description: "Pieces of work that wait for it." }),
          longest: nullable(
            record("LoopPiece", {
              label: Type.String({ description: "Operation or kind of work." }),
              owner: Type.String(),
              ms: Type.Number(),
            }),
          ),
        }),
      }),
    ),
    at: timestamp,
    warnings: anyWarnings,
  }),
  outcomes: { ok: 200 },
  errors: ["room_not_found"],
  audit: "top.read",
});
export type Top = Static<typeof topGet.output>;
export type TopItem = Static<typeof item>;

/** Interface of hosts: the list of hosts, and the capacity of each. */
import { Type } from "@sinclair/typebox";
import { NAME_PATTERN, ROOM_UID_PATTERN } from "../ids.ts";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "./contract.ts";

export const HOST_STATES = ["active", "degraded", "draining", "unreachable", "gone"] as const;

export const hostLabels = Type.Record(
  Type.String({ pattern: "^[A-Za-z0-9][\\w.-]{0,62}$" }),
  Type.String({ maxLength: 63 }),
  {
    additionalProperties: false,
    maxProperties: 16,
  },
);

export const host = record("Host", {
  host: Type.String({ description: "Its name, as X-Roomd-Host of its answers." }),
  is_self: Type.Boolean({ description: "Whether it is the host that answers." }),
  state: oneOf(HOST_STATES, {
    description:
      "degraded: its last sandboxes did not start, no rooms are placed on it; draining: no rooms are placed on it; unreachable: no sign of life for 20 seconds; gone: it was removed.",
  }),
  since: nullable({
    ...timestamp,
    description: "Start of this state; null if it was in it before the answering host began to observe it.",
  }),
  url: Type.String({ description: "URL of this host itself; every other host routes to it too." }),
  labels: hostLabels,
  version: nullable(Type.String()),
  capacity: nullable(
    record("HostCapacity", {
      memory_mib: fields({ promised: Type.Integer(), total: Type.Integer() }),
      disk: nullable(
        record("HostDisk", {
          size_bytes: Type.Integer(),
          free_bytes: Type.Integer({ description: "Free in data_dir." }),
        }),
      ),
      cpus: Type.Integer(),
      rooms: Type.Integer(),
      sandboxes: Type.Integer(),
      templates: Type.Array(Type.String(), { description: "Those of the host, by their ids." }),
    }),
  ),
  joined_at: nullable(timestamp),
});

export const hostEvacuate = operation({
  name: "host_evacuate",
  extension: "moves",
  method: "POST",
  path: "/v1/hosts/{host}/evacuate",
  summary: "Move one room of a host to another host",
  description:
    "No room is placed on the host from then on, and one of its rooms is moved as by room_move, to a host chosen as for a new room. Repeated calls empty the host: each answer has the outcome of one room, and how many remain apart from those in skip. A room that could not be moved stays unchanged, and problem has the reason.",
  access: "operator",
  params: fields({ host: Type.String({ pattern: NAME_PATTERN, description: "Name of the host." }) }),
  query: NONE,
  body: fields({
    skip: Type.Optional(
      Type.Array(Type.String({ pattern: ROOM_UID_PATTERN }), {
        maxItems: 10_000,
        description: "Rooms to leave on the host, by room_uid: rooms that could not be moved.",
      }),
    ),
    force: Type.Optional(
      Type.Boolean({
        description:
          "Move rooms also if the memory of snapshots is unusable there, or a sandbox that cannot be saved now is ended.",
      }),
    ),
  }),
  output: record("HostEvacuated", {
    room: nullable(
      record("EvacuatedRoom", {
        org_id: Type.String(),
        room_id: Type.String(),
        room_uid: Type.String(),
        to: nullable(Type.String({ description: "The host that has it now; null: not moved." })),
        problem: nullable(fields({ code: Type.String(), detail: Type.String() })),
      }),
    ),
    left: Type.Integer({ description: "Rooms that remain on it, without those in skip." }),
  }),
  outcomes: { ok: 200 },
  errors: ["invalid_state", "validation_failed", "host_unreachable", "cluster_unavailable"],
  audit: "host.evacuated",
  example: { body: { force: true } },
});

export const hostList = operation({
  name: "host_list",
  extension: "hosts",
  method: "GET",
  path: "/v1/hosts",
  summary: "List the hosts of the service",
  description:
    "A standalone host lists itself. Data about the others is as of their last lease renewal, at most three seconds old. The operator's key is valid too, and so is the session of an owner or admin.",
  access: "org:admin",
  openToHost: true,
  openToOperator: true,
  ofAccount: true,
  params: NONE,
  query: NONE,
  body: null,
  output: fields({
    items: Type.Array(host),
    directory_age_seconds: Type.Number({
      description:
        "Time since the answering host last read the shared database; 0 for a standalone host. After 20 seconds it is unknown whether the others run.",
    }),
  }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "host.listed",
});

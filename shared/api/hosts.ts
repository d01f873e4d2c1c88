/** Owns the interface of hosts: which there are, and what each has to give. */
import { Type } from "@sinclair/typebox";
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
  is_self: Type.Boolean({ description: "Whether it is the one that answers." }),
  state: oneOf(HOST_STATES, {
    description:
      "degraded: its last sandboxes did not start, no rooms are placed on it; draining: no rooms are placed on it; unreachable: it has said nothing for 20 seconds; gone: it was removed.",
  }),
  url: Type.String({ description: "Where clients reach it by itself; every other host leads there too." }),
  labels: hostLabels,
  version: nullable(Type.String()),
  capacity: nullable(
    record("HostCapacity", {
      memory_mib: fields({ promised: Type.Integer(), total: Type.Integer() }),
      cpus: Type.Integer(),
      rooms: Type.Integer(),
      sandboxes: Type.Integer(),
      templates: Type.Array(Type.String(), { description: "Those of the host, by their ids." }),
    }),
  ),
  joined_at: nullable(timestamp),
});

export const hostList = operation({
  name: "host_list",
  extension: "hosts",
  method: "GET",
  path: "/v1/hosts",
  summary: "List the hosts of the service",
  description:
    "A host that is by itself lists itself. What is told of the others is as old as their last word, three seconds at most.",
  access: "org:admin",
  openToHost: true,
  params: NONE,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(host) }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "host.listed",
});

/** Interface of the service itself: health, configuration, identity of the caller. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "./contract.ts";
import { shownTemplate } from "./templates.ts";

export const CHECK_STATUSES = ["ok", "warn", "fail"] as const;

const check = record("HealthCheck", {
  id: Type.String(),
  status: oneOf(CHECK_STATUSES),
  message: Type.Optional(Type.String({ description: "With a key only." })),
  remedy: Type.Optional(nullable(Type.String({ description: "With a key only." }))),
});

export const TOPOLOGIES = ["nested", "bare_metal", "emulated"] as const;

export const health = operation({
  name: "health",
  method: "GET",
  path: "/health",
  summary: "Whether the service is ready",
  description: "Needs no key. 503 when the service is unavailable.",
  access: "open",
  params: NONE,
  query: NONE,
  body: null,
  output: fields({
    status: oneOf(["ok", "degraded", "unavailable"]),
    topology: oneOf(TOPOLOGIES),
    ready: Type.Boolean(),
    version: Type.String(),
    api_versions: Type.Array(Type.String()),
    acceleration: oneOf(["kvm", "tcg"]),
    uptime_seconds: Type.Integer(),
    time: timestamp,
    checks: Type.Array(check),
    capacity: Type.Optional(fields({ memory_mib_free: Type.Integer(), guest_cids_free: Type.Integer() })),
  }),
  outcomes: { ready: 200, unavailable: 503 },
  errors: [],
  audit: null,
});
export type HealthCheck = Static<typeof check>;

const caps = { soft_cap: Type.Integer(), hard_cap: Type.Integer() };
const plan = record("Plan", {
  rooms: fields(caps),
  sandboxes: fields(caps),
  memory_mib: fields(caps),
  disk_gib: fields(caps),
  template_mib: fields(caps),
  drive: fields({ soft_cap_bytes: Type.Integer(), hard_cap_bytes: Type.Integer() }),
  credits: nullable(Type.Integer({ description: "Null: no limit." })),
});

export const configGet = operation({
  name: "config_get",
  extension: "config",
  method: "GET",
  path: "/v1/config",
  summary: "Show limits, defaults and guarantees",
  access: "key",
  params: NONE,
  query: NONE,
  body: null,
  output: fields({
    version: Type.String(),
    commit: Type.String(),
    limits: Type.Record(Type.String(), Type.Number(), { description: "Every limit, by name." }),
    defaults: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
    plans: Type.Record(Type.String(), plan, { description: "Limits of an organization on each plan." }),
    prices: Type.Record(Type.String(), Type.Number(), { description: "Credits for each unit; a month is 730 hours." }),
    templates: Type.Array(shownTemplate),
    ssh: nullable(
      fields({
        address: Type.String({ description: "Of the SSH gateway as clients reach it, as host:port." }),
        host_key: Type.String({ description: "The gateway's public key, as in a file known_hosts." }),
        fingerprint: Type.String({ description: "As ssh-keygen -l shows it." }),
      }),
    ),
    api_extensions: Type.Array(Type.String(), { description: "Operations beyond the MCP tools." }),
    guarantees: Type.Array(Type.String()),
    non_guarantees: Type.Array(Type.String()),
  }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "config.read",
});

export const meGet = operation({
  name: "me_get",
  extension: "me",
  method: "GET",
  path: "/v1/me",
  summary: "Get the caller's API key",
  access: "key",
  params: NONE,
  query: NONE,
  body: null,
  output: fields({
    org_id: Type.String(),
    plan: Type.String(),
    key_id: Type.String(),
    name: Type.String(),
    scopes: Type.Array(Type.String()),
    room_ids: nullable(Type.Array(Type.String())),
    agent_id: nullable(Type.String()),
    expires_at: nullable(timestamp),
  }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "key.read",
});

export const openapiGet = operation({
  name: "openapi_get",
  extension: "openapi",
  method: "GET",
  path: "/v1/openapi.json",
  summary: "This interface as OpenAPI 3.1",
  access: "open",
  params: NONE,
  query: NONE,
  body: null,
  output: Type.Record(Type.String(), Type.Unknown()),
  outcomes: { ok: 200 },
  errors: [],
  audit: null,
});

export const metrics = operation({
  name: "metrics",
  extension: "service.metrics",
  method: "GET",
  path: "/metrics",
  summary: "Figures of the host and the service for Prometheus",
  description:
    "Text format 0.0.4. From the host's own loopback address no key is needed, unless a proxy has forwarded the request or `http.base_url` names another host. Labels are closed sets of words, never ids.",
  access: "org:admin",
  openToHost: true,
  params: NONE,
  query: NONE,
  body: null,
  output: Type.Unknown(),
  bytesOutput: ["text/plain"],
  outcomes: { ok: 200 },
  errors: [],
  audit: "metrics.read",
});

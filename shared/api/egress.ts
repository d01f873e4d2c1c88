/** Interface of egress: the permitted destinations of a sandbox, read and changed while it runs. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "./contract.ts";
import { egressEntryList, sandboxPath } from "./sandboxes.ts";

const egress = record("Egress", {
  mode: oneOf(["none", "allowlist", "public"]),
  allowlist: Type.Array(Type.String()),
  revision: Type.Integer({ description: "Number of the list's current version; each change adds one." }),
  guest_net: Type.Boolean({
    description: "false: the sandbox was created with enable_guest_net false and has no network.",
  }),
  open_connections: Type.Integer(),
  connections: Type.Integer({ description: "All connections since the sandbox was created." }),
  sent_bytes: Type.Integer(),
  received_bytes: Type.Integer(),
});

export const egressGet = operation({
  name: "egress_get",
  extension: "egress",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/egress",
  summary: "Get a sandbox's egress list and its traffic",
  access: "sandboxes:read",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: egress,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found"],
  audit: "egress.read",
});

export const egressSet = operation({
  name: "egress_set",
  extension: "egress",
  method: "PUT",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/egress",
  summary: "Change the destinations that a sandbox may connect to",
  description:
    'Takes effect immediately: open connections that the new list does not allow are closed. [] allows nothing, not even looking up names. ["*"] allows every public address.',
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: fields({
    allowlist: egressEntryList,
    if_revision: Type.Optional(
      Type.Integer({ minimum: 1, description: "Only if the list has this revision; else 412." }),
    ),
  }),
  output: egress,
  outcomes: { ok: 200 },
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "room_destroying",
    "invalid_state",
    "invalid_egress_entry",
    "precondition_failed",
  ],
  audit: "egress.changed",
  example: { body: { allowlist: ["packages.example.com:443", "*.example.org"] } },
});

/** An explanation's reasons for a refusal. */
const REFUSAL_REASONS = ["not_listed", "blocked_address", "no_address", "no_network"] as const;

export const egressExplain = operation({
  name: "egress_explain",
  extension: "egress.explain",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/egress/explain",
  summary: "Check whether a sandbox may connect to a host, and why",
  description:
    "Uses the same decision as connections, without connecting. A name is resolved as for a connection. A nonexistent name and a name with private addresses only get the same answer.",
  access: "sandboxes:read",
  params: sandboxPath,
  query: fields({
    host: Type.String({ minLength: 1, maxLength: 255, description: "A host name, an address or a CIDR." }),
    port: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 65_535, description: "Absent: whether any port is allowed, and which." }),
    ),
  }),
  body: null,
  output: record("EgressExplanation", {
    host: Type.String({ description: "As it is compared: a name in lower case, without the final dot." }),
    port: nullable(Type.Integer()),
    verdict: oneOf(["allowed", "refused", "conditional"], {
      description: "conditional: at some ports only, or for a part of the range only.",
    }),
    reason: nullable(
      oneOf(REFUSAL_REASONS, {
        description:
          "Reason of the refusal. no_address: the name is on the list, but resolves to no reachable address. no_network: the sandbox has no network.",
      }),
    ),
    entry: nullable(Type.String({ description: "The list's entry that matches, whether or not it is sufficient." })),
    detail: Type.String({ description: "The verdict as a sentence." }),
    hint: nullable(Type.String({ description: "The change that would allow it." })),
  }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found"],
  audit: "egress.decision_read",
});

/** Reasons for a denied connection. */
export const DENIAL_REASONS = [
  "not_listed",
  "blocked_address",
  "sni_mismatch",
  "sni_missing",
  "host_mismatch",
  "bad_request",
  "other",
] as const;

const network = record("SandboxNetwork", {
  sandbox_id: Type.String(),
  agent_id: Type.String(),
  since: timestamp,
  items: Type.Array(
    record("NetworkPlace", {
      host: nullable(Type.String({ description: "The requested name; null for an address." })),
      ip: nullable(Type.String({ description: "The last address; null when it was refused before it was resolved." })),
      port: nullable(Type.Integer({ description: "null if only the name was looked up." })),
      allowed: Type.Boolean(),
      reason: nullable(oneOf(DENIAL_REASONS, { description: "Reason of the refusal." })),
      connections: Type.Integer({ description: "Number of connections and attempts." }),
      sent_bytes: Type.Integer(),
      received_bytes: Type.Integer(),
      first_at: timestamp,
      last_at: timestamp,
    }),
    { description: "Newest first; at most 250 allowed and 250 refused." },
  ),
  other: fields({
    allowed: Type.Integer({
      description: "Connections to destinations that are no longer listed, in favor of later ones.",
    }),
    refused: Type.Integer(),
  }),
});
export type SandboxNetwork = Static<typeof network>;

export const sandboxNetwork = operation({
  name: "sandbox_network",
  extension: "egress.network",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/network",
  summary: "Show a sandbox's connections, allowed and refused",
  description:
    "By name and port, newest first. Kept across restarts, and after the sandbox's end as long as its record.",
  access: "sandboxes:read",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: network,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found"],
  audit: "egress.network_read",
});

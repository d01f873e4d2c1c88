/** Interface of organizations and their API keys. */
import { type Static, Type } from "@sinclair/typebox";
import { AGENT_PATTERN } from "../ids.ts";
import {
  fields,
  NONE,
  named,
  nullable,
  oneOf,
  operation,
  page,
  pageQuery,
  record,
  SCOPES,
  timestamp,
} from "./contract.ts";
import { endedMade } from "./made.ts";
import { PLANS } from "./people/plans.ts";
import { actor, roomId } from "./rooms.ts";

/** Maximum number of valid keys of one organization. */
export const MAX_KEYS = 10_000;
/** Keys that one organization may create within 24 hours, however soon they expire: each remains in the audit log. */
export const MAX_KEYS_A_DAY = 20_000;
/** Maximum number of rotations of one key and its successors, in 24 hours. */
export const MAX_ROTATIONS_A_DAY = 100;
export const MAX_KEY_ROOMS = 256;
const MAX_KEY_SECONDS = 10 * 365 * 86_400;
const MAX_GRACE_SECONDS = 30 * 86_400;
export const DEFAULT_GRACE_SECONDS = 3600;

export const orgPath = fields({ org_id: Type.String({ maxLength: 64, description: "The organization, or self." }) });
const keyPath = fields({ ...orgPath.properties, key_id: Type.String({ maxLength: 64 }) });
const name = Type.String({ minLength: 1, maxLength: 128, pattern: "^[^\\u0000-\\u001f\\u007f]*$" });

const keyFields = {
  key_id: Type.String(),
  name: Type.String(),
  key_prefix: Type.String({ description: "The beginning of the key, to tell keys apart." }),
  state: oneOf(["active", "expired", "revoked"]),
  scopes: Type.Array(oneOf(SCOPES)),
  room_ids: nullable(Type.Array(Type.String(), { description: "The only rooms that the key can see; null: all." })),
  agent_id: nullable(Type.String({ description: "The only agent that the key acts as; null: any." })),
  created_at: timestamp,
  created_by: actor,
  expires_at: nullable(timestamp),
  revoked_at: nullable(timestamp),
  replaced_by: nullable(Type.String({ description: "The key that it was rotated into." })),
  last_used_at: nullable(timestamp),
};
const key = named("ApiKey", fields(keyFields));
export type KeyRecord = Static<typeof key>;
const secret = Type.String({ description: "The key itself, shown only once." });
const newKey = record("NewApiKey", { ...keyFields, key: secret });

export const orgCreate = operation({
  name: "org_create",
  extension: "orgs",
  method: "POST",
  path: "/v1/orgs",
  summary: "Create an organization",
  description: "With the operator's key, and only with it. The answer has the organization's first key.",
  access: "operator",
  params: NONE,
  query: NONE,
  body: fields({ name, plan: Type.Optional(oneOf(PLANS, { description: "free if absent." })) }),
  output: fields({
    org_id: Type.String(),
    name: Type.String(),
    plan: oneOf(PLANS),
    created_at: timestamp,
    key_id: Type.String(),
    api_key: secret,
  }),
  outcomes: { created: 201 },
  errors: ["already_exists"],
  secretOutput: true,
  audit: "org.created",
  example: { body: { name: "Acme", plan: "starter" } },
});

export const keyCreate = operation({
  name: "key_create",
  extension: "keys",
  method: "POST",
  path: "/v1/orgs/{org_id}/keys",
  summary: "Create an API key",
  description:
    "A key never grants more than it has. Absent fields are copied from the calling key: its scopes, rooms, agent and expiry.",
  access: "keys:write",
  ofAccount: true,
  wantsProof: true,
  params: orgPath,
  query: NONE,
  body: fields({
    name,
    scopes: Type.Optional(Type.Array(oneOf(SCOPES), { minItems: 1, maxItems: SCOPES.length, uniqueItems: true })),
    room_ids: Type.Optional(
      Type.Array(roomId, {
        minItems: 1,
        maxItems: MAX_KEY_ROOMS,
        uniqueItems: true,
        description: "The key cannot tell whether any other room exists.",
      }),
    ),
    agent_id: Type.Optional(
      Type.String({
        pattern: AGENT_PATTERN,
        description: "The key acts only as this agent, and only on its sandboxes.",
      }),
    ),
    expires_in_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_KEY_SECONDS })),
  }),
  output: newKey,
  outcomes: { created: 201 },
  errors: ["org_not_found", "scope_escalation", "quota_exceeded"],
  secretOutput: true,
  audit: "key.created",
  example: { body: { name: "reader", scopes: ["rooms:read", "drive:read"], expires_in_seconds: 86_400 } },
});

export const keyList = operation({
  name: "key_list",
  extension: "keys",
  method: "GET",
  path: "/v1/orgs/{org_id}/keys",
  summary: "List the organization's API keys",
  description:
    "Newest first; only the beginning of each key is shown. A key that is bound to rooms or an agent sees only keys bound to the same.",
  access: "keys:write",
  ofAccount: true,
  params: orgPath,
  query: fields(pageQuery),
  body: null,
  output: page(key),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "invalid_cursor"],
  audit: "key.listed",
});

export const keyRotate = operation({
  name: "key_rotate",
  extension: "keys",
  method: "POST",
  path: "/v1/orgs/{org_id}/keys/{key_id}/rotate",
  summary: "Replace an API key",
  description:
    "Makes a new key like it, with the same expiry. Both are valid during the grace period; without one the old key ends immediately.",
  access: "keys:write",
  ofAccount: true,
  wantsProof: true,
  params: keyPath,
  query: NONE,
  body: fields({
    grace_seconds: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MAX_GRACE_SECONDS, description: `${DEFAULT_GRACE_SECONDS} if absent.` }),
    ),
  }),
  output: fields({ ...newKey.properties, replaces: key }),
  outcomes: { created: 201 },
  errors: ["org_not_found", "key_not_found", "scope_escalation", "invalid_state", "quota_exceeded"],
  secretOutput: true,
  audit: "key.rotated",
  example: { body: { grace_seconds: 600 } },
});

export const keyRevoke = operation({
  name: "key_revoke",
  extension: "keys",
  method: "DELETE",
  path: "/v1/orgs/{org_id}/keys/{key_id}",
  summary: "Revoke an API key",
  description:
    "Takes effect immediately: calls with the key are refused, and its open streams are closed. Keys that it made stay valid. Public SSH keys that it added are removed, ports that it exposed are unexposed and webhooks that it made are disabled, unless another key of its line (that it was rotated from or into) is still valid. `ended` counts them.",
  access: "keys:write",
  ofAccount: true,
  params: keyPath,
  query: NONE,
  body: null,
  output: record("RevokedApiKey", { ...keyFields, ended: endedMade }),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "key_not_found"],
  audit: "key.revoked",
});

/** Interface of a person's grants to applications, and of granting. */
import { type Static, Type } from "@sinclair/typebox";
import { NAME_PATTERN } from "../ids.ts";
import {
  fields,
  NONE,
  nullable,
  oneOf,
  operation,
  page,
  pageQuery,
  record,
  SCOPES,
  type Scope,
  timestamp,
} from "./contract.ts";
import { endedMade } from "./made.ts";
import { orgPath } from "./orgs.ts";

/** Scopes that may be granted to applications: none for creating keys or administering the organization. */
export const GRANT_SCOPES = SCOPES.filter((scope) => scope !== "keys:write" && scope !== "org:admin");

/** Code of an application without its own browser (device flow). */
export const USER_CODE_LENGTH = { minLength: 8, maxLength: 16 };

const narrowing = {
  scopes: Type.Optional(
    Type.Array(oneOf(GRANT_SCOPES as readonly Scope[]), {
      minItems: 1,
      maxItems: GRANT_SCOPES.length,
      uniqueItems: true,
      description: "Granted subset of the requested scopes; all if absent, as far as the role allows.",
    }),
  ),
  room_ids: Type.Optional(
    Type.Array(Type.String({ pattern: NAME_PATTERN }), {
      minItems: 1,
      maxItems: 100,
      uniqueItems: true,
      description: "The rooms that it is bound to; all if absent.",
    }),
  ),
  expires_in_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 315_360_000,
      description: "Lifetime of the grant; if absent, until it is ended.",
    }),
  ),
};

const grantFields = {
  grant_id: Type.String({ description: "The key_id that the application's calls are recorded under." }),
  client_id: Type.String(),
  client_name: Type.String({ description: "As the application calls itself." }),
  redirect_host: nullable(Type.String({ description: "Host of the redirect; null for an application with a code." })),
  org_id: Type.String(),
  scopes: Type.Array(Type.String()),
  room_ids: nullable(Type.Array(Type.String())),
  created_at: timestamp,
  expires_at: nullable(timestamp),
  last_used_at: nullable(timestamp),
};
const grant = record("Grant", grantFields);
export type GrantRecord = Static<typeof grant>;

const application = record("Application", {
  ...grantFields,
  user_id: Type.String({ description: "The member that authorized it." }),
  user_name: Type.String(),
});
export type ApplicationRecord = Static<typeof application>;

export const grantList = operation({
  name: "grant_list",
  extension: "account",
  method: "GET",
  path: "/v1/account/grants",
  summary: "List the applications that one has authorized",
  access: "account",
  params: NONE,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(grant) }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "oauth.grants_listed",
});

export const grantCreate = operation({
  name: "grant_create",
  extension: "account",
  method: "POST",
  path: "/v1/account/grants",
  summary: "Authorize an application at /authorize",
  description: "The application's request, and the granted part of it. The answer has the URL for the browser.",
  access: "account",
  wantsProof: true,
  params: NONE,
  query: NONE,
  body: fields({
    request: Type.String({ maxLength: 4096, description: "The query of /authorize, as the application made it." }),
    ...narrowing,
  }),
  output: fields({ grant_id: Type.String(), location: Type.String() }),
  outcomes: { created: 201 },
  errors: ["scope_escalation", "quota_exceeded", "invalid_body"],
  audit: "oauth.granted",
  secretOutput: true,
  example: {
    body: {
      request:
        "client_id=oap_01JB3ZK5Q8F7V9X2M4N6P8R0TA&redirect_uri=http%3A%2F%2F127.0.0.1%3A33418%2F&response_type=code&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256",
      scopes: ["rooms:read"],
    },
  },
});

export const deviceDecide = operation({
  name: "device_decide",
  extension: "account",
  method: "POST",
  path: "/v1/account/grants/device",
  summary: "Approve or reject an application that shows a code",
  access: "account",
  wantsProof: true,
  params: NONE,
  query: NONE,
  body: fields({
    user_code: Type.String({ ...USER_CODE_LENGTH, description: "The code that the application shows." }),
    allow: Type.Boolean(),
    ...narrowing,
  }),
  output: fields({ client_name: Type.String(), allowed: Type.Boolean() }),
  outcomes: { ok: 200 },
  errors: ["device_not_found", "scope_escalation", "quota_exceeded"],
  audit: "oauth.device_decided",
  example: { body: { user_code: "BCDF-GHJK", allow: false } },
});

export const grantEnd = operation({
  name: "grant_end",
  extension: "account",
  method: "DELETE",
  path: "/v1/account/grants/{grant_id}",
  summary: "Revoke an application's access",
  description: "Its tokens become invalid, and its open connections are closed.",
  access: "account",
  params: fields({ grant_id: Type.String({ maxLength: 64 }) }),
  query: NONE,
  body: null,
  output: fields({ grant_id: Type.String() }),
  outcomes: { ok: 200 },
  errors: ["grant_not_found"],
  audit: "oauth.ended",
});

export const applicationList = operation({
  name: "application_list",
  extension: "account",
  method: "GET",
  path: "/v1/orgs/{org_id}/applications",
  summary: "List the applications that members have authorized",
  description: "Newest first. For owners, admins and keys with `org:admin`.",
  access: "org:admin",
  ofAccount: true,
  params: orgPath,
  query: fields(pageQuery),
  body: null,
  output: page(application),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "invalid_cursor"],
  audit: "oauth.applications_listed",
});

export const applicationEnd = operation({
  name: "application_end",
  extension: "account",
  method: "DELETE",
  path: "/v1/orgs/{org_id}/applications/{grant_id}",
  summary: "Revoke the access of a member's application",
  description:
    "Its tokens become invalid, its open connections are closed, and the resources that it made end: `ended` counts them. The member can authorize it again.",
  access: "org:admin",
  ofAccount: true,
  params: fields({ ...orgPath.properties, grant_id: Type.String({ maxLength: 64 }) }),
  query: NONE,
  body: null,
  output: fields({ grant_id: Type.String(), user_id: Type.String(), ended: endedMade }),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "grant_not_found"],
  audit: "oauth.ended",
});

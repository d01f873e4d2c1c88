/** Interface of a person's own account: identity and sign-in sessions. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "../contract.ts";
import { email, personName, ROLES } from "./members.ts";

export const PASSWORD_LENGTH = { minLength: 12, maxLength: 256 };
export const PROOF_SECONDS = 600;

const account = record("Account", {
  user_id: Type.String(),
  email: Type.String(),
  name: Type.String(),
  created_at: timestamp,
  email_verified: Type.Boolean({ description: "Whether the person has shown that the address is theirs." }),
  has_password: Type.Boolean(),
  org_id: Type.String({ description: "The session's current organization." }),
  role: oneOf(ROLES),
  organizations: Type.Array(
    record("Membership", {
      org_id: Type.String(),
      name: Type.String(),
      role: oneOf(ROLES),
      ending_at: nullable(
        Type.String({ format: "date-time", description: "Time at which its end was requested; null: active." }),
      ),
    }),
  ),
  session_id: Type.String(),
  proved_until: nullable(
    Type.String({
      format: "date-time",
      description: "Until this time sensitive actions are allowed; null: re-authentication is needed first.",
    }),
  ),
});
export type AccountRecord = Static<typeof account>;

const session = record("Session", {
  session_id: Type.String(),
  created_at: timestamp,
  seen_at: timestamp,
  expires_at: timestamp,
  ip: nullable(Type.String()),
  user_agent: nullable(Type.String()),
  is_this: Type.Boolean(),
});
export type SessionRecord = Static<typeof session>;

export const accountGet = operation({
  name: "account_get",
  extension: "account",
  method: "GET",
  path: "/v1/account",
  summary: "Show the signed-in person",
  description: "For a web session: keys have no account and use /v1/me.",
  access: "account",
  params: NONE,
  query: NONE,
  body: null,
  output: account,
  outcomes: { ok: 200 },
  errors: [],
  audit: "user.read",
});

export const accountUpdate = operation({
  name: "account_update",
  extension: "account",
  method: "PATCH",
  path: "/v1/account",
  summary: "Change one's name, or the session's organization",
  access: "account",
  params: NONE,
  query: NONE,
  body: fields({
    name: Type.Optional(Type.String(personName)),
    org_id: Type.Optional(Type.String({ maxLength: 64 })),
  }),
  output: account,
  outcomes: { ok: 200 },
  errors: ["org_not_found"],
  audit: "user.updated",
  example: { body: { name: "Ada" } },
});

export const accountExport = operation({
  name: "account_export",
  extension: "account",
  method: "GET",
  path: "/v1/account/export",
  summary: "Show all data stored about oneself",
  description:
    "All rows about the person, by table, without credentials. The person's actions are in the audit of their organizations, under their id.",
  access: "account",
  wantsProof: true,
  params: NONE,
  query: NONE,
  body: null,
  output: fields({
    user_id: Type.String(),
    exported_at: timestamp,
    kept: Type.Record(Type.String(), Type.Array(Type.Record(Type.String(), Type.Unknown()))),
  }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "user.exported",
});

export const accountDelete = operation({
  name: "account_delete",
  extension: "account",
  method: "DELETE",
  path: "/v1/account",
  summary: "Delete one's account",
  description:
    "Permanent: the person leaves every organization, as a removed member does, and their data is deleted. Retained records have only their id. The only owner of an organization must first make another owner, or end the organization.",
  access: "account",
  wantsProof: true,
  params: NONE,
  query: fields({
    email: Type.String({ maxLength: email.maxLength, description: "The account's address, as confirmation." }),
  }),
  body: null,
  output: fields({ user_id: Type.String(), organizations_left: Type.Integer(), keys_revoked: Type.Integer() }),
  outcomes: { ok: 200 },
  errors: ["last_owner", "validation_failed"],
  audit: "user.forgotten",
});

export const sessionList = operation({
  name: "session_list",
  extension: "account",
  method: "GET",
  path: "/v1/account/sessions",
  summary: "List one's sessions",
  access: "account",
  params: NONE,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(session) }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "auth.sessions_listed",
});

export const sessionEnd = operation({
  name: "session_end",
  extension: "account",
  method: "DELETE",
  path: "/v1/account/sessions/{session_id}",
  summary: "End a session",
  description: "Its streams are closed. `this` is the calling session, `others` all but it.",
  access: "account",
  params: fields({ session_id: Type.String({ maxLength: 64 }) }),
  query: NONE,
  body: null,
  output: fields({ sessions_ended: Type.Integer() }),
  outcomes: { ok: 200 },
  errors: ["session_not_found"],
  audit: "auth.signed_out",
});

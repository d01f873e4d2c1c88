/** Interface of a person's external accounts (identity providers), with which they can sign in. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, operation, record, timestamp } from "../contract.ts";

const identity = record("Identity", {
  identity_id: Type.String(),
  issuer: Type.String({ description: "The identity provider." }),
  label: Type.String({ description: "Its name at the provider when it was linked." }),
  is_usable: Type.Boolean({ description: "False: the service now uses another issuer, or none." }),
  created_at: timestamp,
  last_used_at: nullable(timestamp),
});
export type IdentityRecord = Static<typeof identity>;

export const identityList = operation({
  name: "identity_list",
  extension: "account",
  method: "GET",
  path: "/v1/account/identities",
  summary: "List one's external accounts",
  access: "account",
  params: NONE,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(identity) }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "auth.identities_listed",
});

export const identityBegin = operation({
  name: "identity_begin",
  extension: "account",
  method: "POST",
  path: "/v1/account/identities/begin",
  summary: "Start linking an external account",
  description:
    "Returns the URL at which the browser signs in. It comes back to the pages, which link the account; within 5 minutes.",
  access: "account",
  wantsProof: true,
  params: NONE,
  query: NONE,
  body: NONE,
  output: fields({ url: Type.String() }),
  outcomes: { ok: 200 },
  errors: ["invalid_state", "upstream_failed"],
  audit: "auth.identity_begun",
  example: { body: {} },
});

export const identityRemove = operation({
  name: "identity_remove",
  extension: "account",
  method: "DELETE",
  path: "/v1/account/identities/{identity_id}",
  summary: "Unlink an external account",
  access: "account",
  wantsProof: true,
  params: fields({ identity_id: Type.String({ maxLength: 64 }) }),
  query: NONE,
  body: null,
  output: fields({ identity_id: Type.String(), removed: Type.Boolean() }),
  outcomes: { ok: 200 },
  errors: ["identity_not_found", "last_way_in"],
  audit: "auth.identity_removed",
});

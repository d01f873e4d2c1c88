/** Interface of a person's passkeys. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, operation, record, timestamp } from "../contract.ts";
import { personName } from "./members.ts";

export const MAX_PASSKEYS = 20;
const passkeyName = { maxLength: 64, pattern: personName.pattern };

const passkey = record("Passkey", {
  passkey_id: Type.String(),
  name: Type.String(),
  rp_id: Type.String({ description: "The name of the service for which it was made and is valid." }),
  is_usable: Type.Boolean({ description: "False: the service has another name now." }),
  is_synced: Type.Boolean({ description: "Whether its provider has a copy elsewhere; else it is on one device." }),
  created_at: timestamp,
  last_used_at: nullable(timestamp),
});
export type PasskeyRecord = Static<typeof passkey>;

/** A browser's response, with any additional fields. Its parts are validated when it is verified. */
const response = Type.Record(Type.String(), Type.Unknown(), {
  description: "Result of `navigator.credentials.create`, as returned by its `toJSON`.",
});

export const passkeyList = operation({
  name: "passkey_list",
  extension: "account",
  method: "GET",
  path: "/v1/account/passkeys",
  summary: "List one's passkeys",
  access: "account",
  params: NONE,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(passkey) }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "auth.passkeys_listed",
});

export const passkeyOptions = operation({
  name: "passkey_options",
  extension: "account",
  method: "POST",
  path: "/v1/account/passkeys/options",
  summary: "Start creating a passkey",
  description:
    "The browser's options for creating one, for `PublicKeyCredential.parseCreationOptionsFromJSON`. They are valid for 5 minutes, for one passkey, and for this session.",
  access: "account",
  wantsProof: true,
  params: NONE,
  query: NONE,
  body: NONE,
  output: fields({ options: Type.Record(Type.String(), Type.Unknown()) }),
  outcomes: { ok: 200 },
  errors: ["invalid_state", "quota_exceeded"],
  audit: "auth.passkey_begun",
  example: { body: {} },
});

export const passkeyAdd = operation({
  name: "passkey_add",
  extension: "account",
  method: "POST",
  path: "/v1/account/passkeys",
  summary: "Add a passkey",
  access: "account",
  wantsProof: true,
  params: NONE,
  query: NONE,
  body: fields({ name: Type.Optional(Type.String(passkeyName)), response }),
  maxBodyBytes: 16_384,
  output: passkey,
  outcomes: { added: 201 },
  errors: ["validation_failed", "invalid_state", "already_exists", "quota_exceeded"],
  audit: "auth.passkey_added",
  example: { body: { name: "laptop", response: {} } },
});

export const passkeyRemove = operation({
  name: "passkey_remove",
  extension: "account",
  method: "DELETE",
  path: "/v1/account/passkeys/{passkey_id}",
  summary: "Remove a passkey",
  description:
    "The last sign-in method stays: without it only a link from the host would give the person access again.",
  access: "account",
  wantsProof: true,
  params: fields({ passkey_id: Type.String({ maxLength: 64 }) }),
  query: NONE,
  body: null,
  output: fields({ passkey_id: Type.String(), removed: Type.Boolean() }),
  outcomes: { ok: 200 },
  errors: ["passkey_not_found", "last_way_in"],
  audit: "auth.passkey_removed",
});

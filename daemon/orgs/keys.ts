/** Owns API keys: how they are made, how one is recognised. A key is shown once and never stored, only its SHA-256. */
import { createHash, randomBytes } from "node:crypto";
import { SCOPES, type Scope } from "../../shared/api/contract.ts";
import { type KeyId, newId, type OrgId } from "../../shared/ids.ts";
import { after, now } from "../core/clock.ts";
import type { Caller } from "../core/operation.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import { insertKey, prepareKeyLookup, prepareKeyTerm } from "./store.ts";

export const KEY_PATTERN = /^key-[0-9A-Za-z]{43}$/;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const KEY_CHARACTERS = 43;
const PREFIX_CHARACTERS = 8;

export interface NewKey {
  org_id: OrgId | null;
  kind: "api" | "operator";
  name: string;
  scopes?: Scope[];
  room_ids?: string[] | null;
  agent_id?: string | null;
  expires_in_seconds?: number;
}

/** `key-` and 43 base62 characters, 256 bits. */
function makeSecret(): string {
  let characters = "";
  while (characters.length < KEY_CHARACTERS) {
    for (const byte of randomBytes(64)) {
      // 248 is the largest multiple of 62 in a byte: beyond it some characters would be likelier.
      if (byte < 248 && characters.length < KEY_CHARACTERS) characters += BASE62[byte % 62];
    }
  }
  return `key-${characters}`;
}

/** Makes a key within a transaction; `key` is the only copy there will ever be. */
export function createKey(queries: Queries, request: NewKey): { key_id: KeyId; key: string } {
  const key = makeSecret();
  const key_id = newId("kid");
  const created_at = now();
  insertKey(queries, {
    key_id,
    org_id: request.org_id,
    kind: request.kind,
    name: request.name,
    key_sha256: sha256(key),
    key_prefix: key.slice(0, "key-".length + PREFIX_CHARACTERS),
    scopes: request.scopes ?? [...SCOPES],
    room_ids: request.room_ids ?? null,
    agent_id: request.agent_id ?? null,
    created_at,
    expires_at: request.expires_in_seconds === undefined ? null : after(created_at, request.expires_in_seconds),
    revoked_at: null,
  });
  return { key_id, key };
}

/** Recognises the caller by the text of the Authorization header. */
export function makeAuthenticate(queries: Queries): (authorization: string | null) => Caller {
  const lookup = prepareKeyLookup(queries);
  return (authorization) => {
    if (authorization === null || authorization === "") throw new ServiceError("missing_credentials");
    const key = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (key === undefined || !KEY_PATTERN.test(key)) throw new ServiceError("invalid_api_key");
    // The look-up is by hash, so its timing tells nothing about the key itself.
    const row = lookup.get({ key_sha256: sha256(key) });
    if (row?.kind !== "api" || row.revoked_at !== null) throw new ServiceError("invalid_api_key");
    if (row.expires_at !== null && row.expires_at <= now()) throw new ServiceError("api_key_expired");
    const { kind: _, revoked_at: __, ...caller } = row;
    return caller;
  };
}

/** Whether a key is neither revoked nor expired, for what goes on longer than a call. */
export function makeIsCurrent(queries: Queries): (keyId: KeyId) => boolean {
  const term = prepareKeyTerm(queries);
  return (key_id) => {
    const key = term.get({ key_id });
    return key !== undefined && key.revoked_at === null && (key.expires_at === null || key.expires_at > now());
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

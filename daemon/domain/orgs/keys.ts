/** API keys: creation and authentication. A key is shown once and never stored, only its SHA-256. */
import { hash, randomBytes } from "node:crypto";
import { type Access, SCOPES } from "../../../shared/api/contract.ts";
import type { KeyRecord } from "../../../shared/api/orgs.ts";
import { type KeyId, newId, type OrgId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import { after, now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Grant } from "./grant.ts";
import { type CallerRow, prepareKeyLookup, prepareKeyLookupById, prepareKeyTerm } from "./store.ts";
import type { KeyRow } from "./table.ts";

export const KEY_PATTERN = /^key-[0-9A-Za-z]{43}$/;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const KEY_CHARACTERS = 43;
const PREFIX_CHARACTERS = 8;

/** An absent field means everything: all scopes, all rooms, any agent, no expiry. */
export interface NewKey extends Partial<Grant> {
  org_id: OrgId | null;
  /** oauth: the grant of an application, which authenticates with tokens; the key itself is never handed out. */
  kind: "api" | "operator" | "oauth";
  name: string;
  maker: { type: string; id: string };
  first_key_id?: KeyId | null;
}

/** `key-` and 43 base62 characters, 256 bits. */
function makeSecret(): string {
  let characters = "";
  while (characters.length < KEY_CHARACTERS) {
    for (const byte of randomBytes(64)) {
      // 248 is the largest multiple of 62 in a byte: larger values would make some characters likelier.
      if (byte < 248 && characters.length < KEY_CHARACTERS) characters += BASE62[byte % 62];
    }
  }
  return `key-${characters}`;
}

/** A new key, not yet handed out, and its row; `key` is the only copy there will ever be. */
export function newKey(request: NewKey): { key: string; row: KeyRow } {
  const key = makeSecret();
  const row: KeyRow = {
    key_id: newId("kid"),
    org_id: request.org_id,
    kind: request.kind,
    name: request.name,
    key_sha256: sha256(key),
    key_prefix: key.slice(0, "key-".length + PREFIX_CHARACTERS),
    scopes: [...(request.scopes ?? SCOPES)],
    room_ids: request.room_ids ? [...request.room_ids] : null,
    agent_id: request.agent_id ?? null,
    created_at: now(),
    expires_at: request.expires_at ?? null,
    revoked_at: null,
    created_by_type: request.maker.type,
    created_by_id: request.maker.id,
    replaced_by: null,
    last_used_at: null,
    first_key_id: request.first_key_id ?? null,
    ended_with_maker: false,
  };
  return { key, row };
}

/** A key's replacement, and the change to the replaced key. */
export interface Rotation {
  key: string;
  row: KeyRow;
  change: Partial<KeyRow>;
}

/** Throws invalid_state. */
export function rotationOf(old: KeyRow, graceSeconds: number, maker: NewKey["maker"]): Rotation {
  const { key_id, replaced_by } = old;
  if (replaced_by !== null) {
    throw new ServiceError("invalid_state", {
      detail: `Key ${key_id} was already rotated. Rotate ${replaced_by}, which replaced it.`,
      details: { replaced_by },
    });
  }
  if (hasExpired(old)) throw new ServiceError("invalid_state", { detail: `The key ${key_id} has expired.` });
  const made = newKey({ ...old, maker, first_key_id: old.first_key_id ?? key_id });
  const until = after(made.row.created_at, graceSeconds);
  const change = {
    replaced_by: made.row.key_id,
    ...(graceSeconds === 0 ? { revoked_at: made.row.created_at } : {}),
    ...(graceSeconds > 0 && (old.expires_at ?? until) >= until ? { expires_at: until } : {}),
  };
  return { ...made, change };
}

/** A key as shown to people, without usable secrets. */
export function toRecord(row: KeyRow): KeyRecord {
  const {
    org_id: _,
    kind: __,
    key_sha256: ___,
    first_key_id: ____,
    ended_with_maker: _____,
    created_by_type: type,
    created_by_id: id,
    ...shown
  } = row;
  const state = row.revoked_at !== null ? "revoked" : hasExpired(row) ? "expired" : "active";
  return { ...shown, state, created_by: { type, id } };
}

/** Whether it may be used. */
export const isGood = (row: Pick<KeyRow, "expires_at" | "revoked_at">): boolean =>
  row.revoked_at === null && !hasExpired(row);

const hasExpired = ({ expires_at }: Pick<KeyRow, "expires_at">): boolean => expires_at !== null && expires_at <= now();

/** Authenticates the caller by the Authorization header; the operator's key is valid for operator calls only. */
export type Authenticate = (authorization: string | null, access?: Access) => Caller;

type UsedKey = Pick<KeyRow, "key_id" | "last_used_at">;

/** Calls `onUse` for each accepted key. */
export function makeAuthenticate(queries: Queries, onUse: (key: UsedKey) => void): Authenticate {
  const lookup = prepareKeyLookup(queries);
  return (authorization, access) => {
    if (authorization === null || authorization === "") throw new ServiceError("missing_credentials");
    const key = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (key === undefined || !KEY_PATTERN.test(key)) throw new ServiceError("invalid_api_key");
    // The look-up is by hash, so its timing reveals nothing about the key itself.
    const row = lookup(sha256(key));
    if (!row || row.revoked_at !== null) throw new ServiceError("invalid_api_key");
    if (row.kind === "operator" && access === "operator") return operatorOf(row);
    const caller = row.kind === "api" ? callerOf(row) : null;
    if (!caller) throw new ServiceError("invalid_api_key");
    if (hasExpired(caller)) throw new ServiceError("api_key_expired");
    onUse(row);
    return caller;
  };
}

/** Caller of an application's grant, of which a token was presented. Throws invalid_api_key, api_key_expired. */
export function makeCallerOfGrant(queries: Queries, onUse: (key: UsedKey) => void): (keyId: KeyId) => Caller {
  const lookup = prepareKeyLookupById(queries);
  return (keyId) => {
    const row = lookup(keyId);
    const caller = row?.kind === "oauth" && row.revoked_at === null ? callerOf(row) : null;
    if (!row || !caller) throw new ServiceError("invalid_api_key", { detail: "The application has been signed out." });
    if (hasExpired(caller)) throw new ServiceError("api_key_expired");
    onUse(row);
    return caller;
  };
}

/** Callers made of cached rows. */
const callers = new WeakMap<CallerRow, Caller>();

/** Null for a key without an organization. */
function callerOf(row: CallerRow): Caller | null {
  const known = callers.get(row);
  if (known) return known;
  const { kind, revoked_at: _, last_used_at: __, org_id, plan, ...rest } = row;
  if (org_id === null || plan === null) return null;
  const caller: Caller = Object.freeze({
    ...rest,
    ...(kind === "oauth" ? { granted: true as const } : {}),
    org_id,
    plan,
  });
  callers.set(row, caller);
  return caller;
}

/** The operator has no organization, and no scope in one. */
function operatorOf({ key_id, name }: Pick<KeyRow, "key_id" | "name">): Caller {
  const none = { org_id: "" as OrgId, plan: "", scopes: [], room_ids: null, agent_id: null, expires_at: null };
  return { kind: "operator", key_id, name, ...none };
}

/** Whether a key is neither revoked nor expired, for work that outlasts a call. */
export function makeIsCurrent(queries: Queries): (keyId: KeyId) => boolean {
  const term = prepareKeyTerm(queries);
  return (key_id) => {
    const key = term.get({ key_id });
    return key !== undefined && isGood(key);
  };
}

function sha256(text: string): string {
  return hash("sha256", text);
}

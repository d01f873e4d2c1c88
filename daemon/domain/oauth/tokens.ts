/**
 * Tokens of a grant: an authorization or device code is exchanged once for the first two, and a refresh token for the next two. For a
 * minute, a rotated refresh token returns the same successor, since responses get lost; after that, its reuse ends the grant.
 */
import type { KeyId } from "../../../shared/ids.ts";
import { after, now, wallMs } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { getKey, isGood } from "../orgs/index.ts";
import { Refusal } from "./refusal.ts";
import { answersChallenge, hashOf, makeSalt, makeSecret, sha256, successorOf } from "./secrets.ts";
import {
  countRotated,
  dropOldTokens,
  getGrant,
  getToken,
  grantByCode,
  insertToken,
  markRotated,
  useCode,
} from "./store.ts";
import type { GrantRow } from "./table.ts";

export const ACCESS_SECONDS = 3600;
const REFRESH_SECONDS = 60 * 86_400;
export const CODE_SECONDS = 60;
/** Time in which a lost response may be requested again. */
const GRACE_SECONDS = 60;
/** Per grant; above it, the oldest are deleted. Refresh tokens are retained until they expire: reuse of one reveals a thief. */
const MAX_ACCESS = 20;
/** Maximum refreshes of one grant in an hour, which is the lifetime of an access token. */
const MAX_ROTATIONS = 60;

export interface Issued {
  key_id: KeyId;
  access_token: string;
  refresh_token: string;
  expires_in: number;
  scope: string;
}

/** A used code or token was presented again: more than one party has it. */
export class Reused extends Refusal {
  readonly key_id: KeyId;

  constructor(key_id: KeyId, kind: string) {
    super("invalid_grant", `The ${kind} was used before. The application has to be signed in again.`);
    this.key_id = key_id;
  }
}

const bad = (detail: string) => new Refusal("invalid_grant", detail);

interface AskedByCode {
  client_id: string;
  code: string;
  redirect_uri: string | undefined;
  code_verifier: string;
}

/** Within a transaction. Throws invalid_grant, Reused. */
export function tokensForCode(queries: Queries, { client_id, code, redirect_uri, code_verifier }: AskedByCode): Issued {
  const hashed = hashOf("oac-", code);
  const grant = hashed === null ? undefined : grantByCode(queries, hashed);
  if (!grant || grant.client_id !== client_id) throw bad("The code is not valid.");
  if (grant.code_used_at !== null) throw new Reused(grant.key_id, "code");
  if ((grant.code_expires_at ?? "") <= now()) throw bad("The code has expired.");
  if (redirect_uri !== undefined && redirect_uri !== grant.redirect_uri)
    throw bad("redirect_uri differs from that of the authorization request.");
  if (!answersChallenge(code_verifier, grant.code_challenge ?? ""))
    throw bad("code_verifier does not match the code_challenge.");
  if (!useCode(queries, grant.key_id, now())) throw new Reused(grant.key_id, "code");
  return firstTokens(queries, grant);
}

/** In a transaction. Throws invalid_grant. */
export function firstTokens(queries: Queries, grant: GrantRow): Issued {
  return issue(queries, grant, makeSecret("oat-"), makeSecret("ort-"));
}

/** Within a transaction. Throws invalid_grant, Reused. */
export function tokensForRefresh(queries: Queries, { client_id, token }: { client_id: string; token: string }): Issued {
  const hashed = hashOf("ort-", token);
  const row = hashed === null ? undefined : getToken(queries, hashed);
  const grant = row && getGrant(queries, row.key_id);
  if (!grant || row.kind !== "refresh" || grant.client_id !== client_id) throw bad("The refresh token is not valid.");
  if (row.rotated_at === null) {
    if (row.expires_at <= now()) throw bad("The refresh token has expired.");
    if (countRotated(queries, grant.key_id, after(now(), -3600)) >= MAX_ROTATIONS) {
      throw new Refusal(
        "invalid_request",
        "The application refreshes too often. Use the access token, and retry in an hour.",
      );
    }
    const salt = makeSalt();
    markRotated(queries, row.token_sha256, now(), salt);
    return issue(queries, grant, successorOf("oat-", token, salt), successorOf("ort-", token, salt));
  }
  if (after(row.rotated_at, GRACE_SECONDS) <= now()) throw new Reused(grant.key_id, "refresh token");
  const salt = row.salt ?? "";
  const access_token = successorOf("oat-", token, salt);
  const scope = requireScope(queries, grant);
  const expires_in = secondsUntil(getToken(queries, sha256(access_token))?.expires_at ?? now());
  return { key_id: grant.key_id, access_token, refresh_token: successorOf("ort-", token, salt), expires_in, scope };
}

function issue(queries: Queries, { key_id }: GrantRow, access_token: string, refresh_token: string): Issued {
  const scope = requireScope(queries, { key_id });
  const created_at = now();
  const make = (kind: "access" | "refresh", token: string, seconds: number) =>
    insertToken(queries, {
      token_sha256: sha256(token),
      key_id,
      kind,
      created_at,
      expires_at: after(created_at, seconds),
      rotated_at: null,
      salt: null,
    });
  make("access", access_token, ACCESS_SECONDS);
  make("refresh", refresh_token, REFRESH_SECONDS);
  dropOldTokens(queries, key_id, "access", MAX_ACCESS);
  return { key_id, access_token, refresh_token, expires_in: ACCESS_SECONDS, scope };
}

/** The granted scopes, in the form for applications. Throws invalid_grant. */
function requireScope(queries: Queries, { key_id }: Pick<GrantRow, "key_id">): string {
  const key = getKey(queries, key_id);
  if (!key || !isGood(key)) throw bad("The application has been signed out.");
  return key.scopes.join(" ");
}

const secondsUntil = (moment: string): number => Math.max(0, Math.floor((Date.parse(moment) - wallMs()) / 1000));

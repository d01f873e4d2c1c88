/** Sessions: start, lifetime, and the caller that they stand for. */

import { READ_SCOPES } from "../../../../shared/api/contract.ts";
import { PROOF_SECONDS } from "../../../../shared/api/people/account.ts";
import { type KeyId, newId, type OrgId, type SessionId, type UserId } from "../../../../shared/ids.ts";
import type { Caller, HeldSession } from "../../../core/call/operation.ts";
import { after, at, now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { givenBy } from "../members/roles.ts";
import {
  changeSession,
  dropSessions,
  getSession,
  insertSession,
  prepareSessionLookup,
  type SessionOf,
} from "../store.ts";
import type { SessionRow } from "../table.ts";
import { hashOf, makeSecret } from "./secrets.ts";

const IDLE_SECONDS = 14 * 86_400;
const LONGEST_SECONDS = 90 * 86_400;
/** Minimum interval between writes of a session's last use. */
const SEEN_SECONDS = 3600;
/** Limit per user; above it the oldest end. */
const MAX_SESSIONS = 100;

/** Source of a person's request. */
export interface From {
  ip: string | null;
  user_agent: string | null;
}

/** `secret` is the only copy. */
export function addSession(
  queries: Queries,
  userId: UserId,
  orgId: OrgId,
  { ip, user_agent }: From,
): { secret: string; row: SessionRow } {
  const { secret, sha256 } = makeSecret();
  const began = now();
  dropSessions(queries, userId, after(began, -LONGEST_SECONDS), MAX_SESSIONS - 1);
  const row: SessionRow = {
    session_id: newId("ses"),
    secret_sha256: sha256,
    user_id: userId,
    org_id: orgId,
    created_at: began,
    seen_at: began,
    proved_at: began,
    ip,
    user_agent: user_agent?.slice(0, 256) ?? null,
    ended_at: null,
  };
  insertSession(queries, row);
  return { secret, row };
}

/** Renews the session's secret after re-authentication: a copy of the previous one is useless. */
export function renewSession(queries: Queries, sessionId: SessionId): string {
  const { secret, sha256 } = makeSecret();
  changeSession(queries, sessionId, { secret_sha256: sha256, proved_at: now() });
  return secret;
}

export function expiryOf({ created_at, seen_at }: Pick<SessionRow, "created_at" | "seen_at">): string {
  return at(Math.min(Date.parse(seen_at) + IDLE_SECONDS * 1000, Date.parse(created_at) + LONGEST_SECONDS * 1000));
}

export const provedUntil = ({ proved_at }: Pick<SessionRow, "proved_at">): string => after(proved_at, PROOF_SECONDS);

/** As of this transaction, which may have ended the session. Throws proof_required, and session_ended if the user was disabled since. */
export function requireProof(queries: Queries, sessionId: SessionId): void {
  const row = getSession(queries, sessionId);
  if (row && row.disabled_at !== null) throw new ServiceError("session_ended");
  if (!row || provedUntil(row) <= now()) throw new ServiceError("proof_required");
}

const isGood = (row: SessionOf, expires_at = expiryOf(row), moment = now()): boolean =>
  row.ended_at === null && row.disabled_at === null && row.role !== null && expires_at > moment;

/** The current session in this transaction. Throws session_ended. */
export function requireSession(queries: Queries, sessionId: SessionId): SessionOf {
  const row = getSession(queries, sessionId);
  if (!row || !isGood(row)) throw new ServiceError("session_ended");
  return row;
}

/** Authenticates a person by a session's secret. Throws session_ended. */
export type Recognise = (secret: string) => Caller;

/** `onSeen` is called for a session that was not seen for some time, until that is written. */
export function makeRecognise(
  queries: Queries,
  planOf: (orgId: OrgId) => string,
  onSeen: (sessionId: SessionId) => void,
): Recognise {
  const lookup = prepareSessionLookup(queries);
  return (secret) => {
    const sha256 = hashOf(secret);
    const row = sha256 === null ? undefined : lookup(sha256);
    if (!row) throw new ServiceError("session_ended");
    const { caller, expires_at, fresh_until } = factsOf(row, planOf);
    const moment = now();
    if (!isGood(row, expires_at, moment)) throw new ServiceError("session_ended");
    if (fresh_until <= moment) onSeen(row.session_id);
    return caller;
  };
}

interface Facts {
  caller: Caller;
  expires_at: string;
  /** End of the time in which its last use need not be written again. */
  fresh_until: string;
}

/** Facts derived from cached rows. */
const known = new WeakMap<SessionOf, Facts>();

function factsOf(row: SessionOf, planOf: (orgId: OrgId) => string): Facts {
  const before = known.get(row);
  if (before) return before;
  const role = row.role ?? "viewer";
  const held = { session_id: row.session_id, looks_at: row.org_id, role };
  const caller: Caller = Object.freeze({
    kind: "user",
    session: { ...held, gives: givenBy(role), proved_until: provedUntil(row) },
    org_id: row.org_id,
    key_id: row.user_id as string as KeyId,
    name: row.name,
    // Evaluated on each read; few callers read it.
    get plan() {
      return planOf(row.org_id);
    },
    scopes: READ_SCOPES,
    room_ids: null,
    agent_id: null,
    expires_at: null,
  });
  const facts = { caller, expires_at: expiryOf(row), fresh_until: after(row.seen_at, SEEN_SECONDS) };
  known.set(row, facts);
  return facts;
}

export function isCurrent(queries: Queries, { session_id, looks_at, role }: HeldSession): boolean {
  const row = getSession(queries, session_id);
  return row !== undefined && row.org_id === looks_at && row.role === role && isGood(row);
}

/** Within a transaction, or before one. Throws session_ended, proof_required. */
export function requireProved(queries: Queries, sessionId: SessionId) {
  const session = requireSession(queries, sessionId);
  if (provedUntil(session) <= now()) throw new ServiceError("proof_required");
  return session;
}

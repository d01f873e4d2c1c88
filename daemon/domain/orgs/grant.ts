/**
 * Permissions of a key over other keys: it grants no more than it has, and sees keys bound within its own rooms and agent. An unspecified
 * field is granted as the granting key has it.
 *
 * A public SSH key or an exposed port lasts no longer than the lifetime of the key that makes it; made.ts ends it when that key is revoked.
 */
import type { Scope } from "../../../shared/api/contract.ts";
import type { KeyId } from "../../../shared/ids.ts";
import { type Caller, firstKeyOf } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";

/** The permissions of a key. */
export interface Grant {
  scopes: readonly Scope[];
  room_ids: readonly string[] | null;
  agent_id: string | null;
  expires_at: string | null;
}

type Bound = Pick<Grant, "room_ids" | "agent_id">;

/** Throws scope_escalation. */
export function grantBy(giver: Caller, requested: { [K in keyof Grant]?: Grant[K] | undefined }): Grant {
  const grant: Grant = {
    scopes: requested.scopes ?? givableBy(giver),
    room_ids: requested.room_ids ?? giver.room_ids,
    agent_id: requested.agent_id ?? giver.agent_id,
    expires_at: requested.expires_at ?? giver.expires_at,
  };
  requireGivable(giver, grant);
  return grant;
}

/** A person grants keys the scopes of the person's role, which are more than those of the session. */
const givableBy = ({ scopes, session }: Caller): readonly Scope[] => session?.gives ?? scopes;

/** Lifetime of a thing that a key makes. */
export interface Term {
  /** First key of the line whose end ends the new key; null for none. */
  ends_with: KeyId | null;
  /** Null: it has no expiry of its own. */
  expires_at: string | null;
}

/** A thing made by a guest ends with its sandbox, independent of keys. */
export function termBy(maker: Caller): Term {
  if (maker.kind) return { ends_with: null, expires_at: null };
  return { ends_with: firstKeyOf(maker), expires_at: maker.expires_at };
}

/** Expiry of a thing requested until `asked`; null for as long as possible. Throws scope_escalation. */
export function endBy(giver: Pick<Caller, "expires_at">, requested: string | null): string | null {
  const { expires_at } = giver;
  if (expires_at !== null && requested !== null && requested > expires_at) throw expiresSooner(expires_at);
  return requested ?? expires_at;
}

const expiresSooner = (expires_at: string) =>
  new ServiceError("scope_escalation", { detail: "The key itself expires sooner.", details: { expires_at } });

/** Throws scope_escalation. */
export function requireGivable(giver: Caller, grant: Grant): void {
  const refuse = (detail: string, details: Record<string, unknown>) => {
    throw new ServiceError("scope_escalation", { detail, details });
  };
  // An organization's administrator has every scope.
  const givable = givableBy(giver);
  const missing = givable.includes("org:admin") ? [] : grant.scopes.filter((scope) => !givable.includes(scope));
  if (missing.length > 0) refuse("The key does not have the scopes that it would grant.", { scopes: missing });
  const { room_ids: rooms, agent_id: agent } = giver;
  if (!areRoomsWithin(rooms, grant.room_ids)) refuse("The key is bound to fewer rooms.", { room_ids: rooms });
  if (!isAgentWithin(agent, grant.agent_id)) refuse("The key is bound to another agent.", { agent_id: agent });
  const { expires_at } = giver;
  if (expires_at !== null && (grant.expires_at === null || grant.expires_at > expires_at)) {
    throw expiresSooner(expires_at);
  }
}

/** Whether a key is visible to another key. */
export function isSeenBy(viewer: Bound, key: Bound): boolean {
  return areRoomsWithin(viewer.room_ids, key.room_ids) && isAgentWithin(viewer.agent_id, key.agent_id);
}

const areRoomsWithin = (outer: Bound["room_ids"], inner: Bound["room_ids"]): boolean =>
  outer === null || (inner?.every((room) => outer.includes(room)) ?? false);

const isAgentWithin = (outer: string | null, inner: string | null): boolean => outer === null || outer === inner;

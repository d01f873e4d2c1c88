/**
 * Owns what a key may do to others: it gives no more than it has, and sees those that are bound within its own rooms and agent.
 * What is not asked for is given as the giver has it.
 */
import type { Scope } from "../../../shared/api/contract.ts";
import type { Caller } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";

/** What a key has. */
export interface Grant {
  scopes: readonly Scope[];
  room_ids: readonly string[] | null;
  agent_id: string | null;
  expires_at: string | null;
}

type Bound = Pick<Grant, "room_ids" | "agent_id">;

/** Throws scope_escalation. */
export function grantBy(giver: Caller, asked: { [K in keyof Grant]?: Grant[K] | undefined }): Grant {
  const grant: Grant = {
    scopes: asked.scopes ?? giver.scopes,
    room_ids: asked.room_ids ?? giver.room_ids,
    agent_id: asked.agent_id ?? giver.agent_id,
    expires_at: asked.expires_at ?? giver.expires_at,
  };
  requireGivable(giver, grant);
  return grant;
}

/** Throws scope_escalation. */
export function requireGivable(giver: Caller, grant: Grant): void {
  const refuse = (detail: string, details: Record<string, unknown>) => {
    throw new ServiceError("scope_escalation", { detail, details });
  };
  // An organization's administrator has every scope.
  const missing = giver.scopes.includes("org:admin")
    ? []
    : grant.scopes.filter((scope) => !giver.scopes.includes(scope));
  if (missing.length > 0) refuse("The key does not have the scopes that it would grant.", { scopes: missing });
  const { room_ids: rooms, agent_id: agent } = giver;
  if (!areRoomsWithin(rooms, grant.room_ids)) refuse("The key is bound to fewer rooms.", { room_ids: rooms });
  if (!isAgentWithin(agent, grant.agent_id)) refuse("The key is bound to another agent.", { agent_id: agent });
  const { expires_at } = giver;
  if (expires_at !== null && (grant.expires_at === null || grant.expires_at > expires_at)) {
    refuse("The key itself expires sooner.", { expires_at });
  }
}

/** Whether a key exists for another one. */
export function isSeenBy(viewer: Bound, key: Bound): boolean {
  return areRoomsWithin(viewer.room_ids, key.room_ids) && isAgentWithin(viewer.agent_id, key.agent_id);
}

const areRoomsWithin = (outer: Bound["room_ids"], inner: Bound["room_ids"]): boolean =>
  outer === null || (inner?.every((room) => outer.includes(room)) ?? false);

const isAgentWithin = (outer: string | null, inner: string | null): boolean => outer === null || outer === inner;

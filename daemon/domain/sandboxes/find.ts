/** Finds the sandbox of a request path. */
import type { KeyCall } from "../../core/call/operation.ts";
import { findRoom, type RoomTarget } from "../../core/call/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { SandboxDeps } from "./deps.ts";
import { findSandbox, findSandboxEver, listSandboxes } from "./store.ts";
import type { SandboxRow } from "./table.ts";

export interface SandboxTarget {
  room: RoomTarget;
  row: SandboxRow;
  /** Whether the caller is a web session, which only observes: observation is not use. */
  isLookedAt: boolean;
}

/**
 * By agent_id or sandbox_id. A caller that is bound to an agent has access to that agent's sandbox only. Throws room_not_found,
 * sandbox_not_found.
 */
export function findTarget(deps: SandboxDeps, call: KeyCall, params: Record<string, string>): SandboxTarget {
  return findBy(findSandbox, deps, call, params);
}

/** The same, but falls back to a destroyed sandbox if no other exists. */
export function findTargetEver(deps: SandboxDeps, call: KeyCall, params: Record<string, string>): SandboxTarget {
  return findBy(findSandboxEver, deps, call, params);
}

function findBy(
  find: typeof findSandbox,
  deps: SandboxDeps,
  call: KeyCall,
  params: Record<string, string>,
): SandboxTarget {
  const room = findRoom(deps, call, params);
  const row = find(deps.database.queries, room.room_uid, String(params.sandbox));
  const { agent_id } = call.caller;
  if (!row || (agent_id !== null && agent_id !== row.agent_id)) {
    throw new ServiceError("sandbox_not_found", {
      detail: `Room ${room.room_id} has no sandbox ${params.sandbox}.`,
      hint: hintOf(deps, room, agent_id),
    });
  }
  call.audit.agent_id = row.agent_id;
  call.audit.sandbox_id = row.sandbox_id;
  return { room, row, isLookedAt: call.caller.session !== undefined };
}

const MAX_NAMED = 8;

/** The agents of the room with a sandbox, as far as visible to the caller. */
function hintOf({ database }: SandboxDeps, { room_uid, org_id }: RoomTarget, agentId: string | null): string {
  const filter = { org_id, room_uids: [room_uid], agent_id: agentId, after: null, limit: MAX_NAMED + 1 };
  const agents = listSandboxes(database.queries, filter).map(({ agent_id }) => agent_id);
  const names = agents.slice(0, MAX_NAMED).join(", ") + (agents.length > MAX_NAMED ? ", …" : "");
  return `${agents.length === 0 ? "No agent of the room has a sandbox." : `Agents with a sandbox: ${names}.`} {{sandbox_create}} creates one.`;
}

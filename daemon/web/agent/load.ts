/** Loads the room and the sandbox of an agent's pages. */
import type { agentList } from "../../../shared/api/fabric.ts";
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import type { SandboxRecord, sandboxGet, sandboxList } from "../../../shared/api/sandboxes.ts";
import { get, part, Refused } from "../data/api.ts";
import { auditOf, loadRoom } from "../room/load.ts";

const PAGE = 1000;
/** Limit of searched pages of a room's agents and destroyed sandboxes. */
const MAX_PAGES = 5;

export interface Agent {
  room: RoomRecord;
  sandbox: SandboxRecord | null;
  /** Whether the active room has, or had, an agent with this name. */
  isKnown: boolean;
}

/** Throws Refused: room_not_found. */
export async function loadAgent(roomId: string, agentId: string, signal: AbortSignal): Promise<Agent> {
  const room = await loadRoom(roomId, signal);
  if (room.state !== "active") return { room, sandbox: null, isKnown: true };
  try {
    const path = `/v1/rooms/${part(room.room_id)}/sandboxes/${part(agentId)}`;
    return { room, sandbox: await get<typeof sandboxGet>(path, {}, signal), isKnown: true };
  } catch (error) {
    if (!(error instanceof Refused) || error.problem.code !== "sandbox_not_found") throw error;
    const sandbox = (await endedOf(room.room_id, agentId, signal))[0] ?? null;
    const isKnown =
      sandbox !== null ||
      (await findPresent(room.room_id, agentId, signal)) !== null ||
      (await auditOf(room, { agent_id: agentId, limit: 1 }, signal)).items.length > 0;
    return { room, sandbox, isKnown };
  }
}

/** The agent among the agents of the room. */
export async function findPresent(roomId: string, agentId: string, signal: AbortSignal) {
  let cursor: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page: Awaited<ReturnType<typeof get<typeof agentList>>> = await get<typeof agentList>(
      `/v1/rooms/${part(roomId)}/agents`,
      { limit: PAGE, cursor },
      signal,
    );
    const found = page.items.find(({ agent_id }) => agent_id === agentId);
    cursor = page.next_cursor;
    if (found || cursor === null) return found ?? null;
  }
  return null;
}

/** The agent's destroyed sandboxes that the service still lists, newest first. */
export async function endedOf(roomId: string, agentId: string, signal: AbortSignal): Promise<SandboxRecord[]> {
  const found: SandboxRecord[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page: Awaited<ReturnType<typeof get<typeof sandboxList>>> = await get<typeof sandboxList>(
      `/v1/rooms/${part(roomId)}/sandboxes`,
      { state: "destroyed", limit: PAGE, cursor },
      signal,
    );
    found.push(...page.items.filter(({ agent_id }) => agent_id === agentId));
    cursor = page.next_cursor;
    if (cursor === null) break;
  }
  return found.sort((one, other) => other.created_at.localeCompare(one.created_at));
}

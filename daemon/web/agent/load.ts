/** Owns finding what the pages of an agent are about: its room, and its sandbox. */
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import type { SandboxRecord, sandboxGet, sandboxList } from "../../../shared/api/sandboxes.ts";
import { get, part, Refused } from "../data/api.ts";
import { loadRoom } from "../room/load.ts";

const PAGE = 1000;
/** More ended sandboxes of a room are not looked through. */
const MOST_PAGES = 5;

export interface Agent {
  room: RoomRecord;
  sandbox: SandboxRecord | null;
}

/** Throws Refused: room_not_found. */
export async function loadAgent(roomId: string, agentId: string, signal: AbortSignal): Promise<Agent> {
  const room = await loadRoom(roomId, signal);
  if (room.state !== "active") return { room, sandbox: null };
  try {
    const path = `/v1/rooms/${part(room.room_id)}/sandboxes/${part(agentId)}`;
    return { room, sandbox: await get<typeof sandboxGet>(path, {}, signal) };
  } catch (error) {
    if (!(error instanceof Refused) || error.problem.code !== "sandbox_not_found") throw error;
    return { room, sandbox: (await endedOf(room.room_id, agentId, signal))[0] ?? null };
  }
}

/** The agent's sandboxes that were destroyed and are still known, the newest first. */
export async function endedOf(roomId: string, agentId: string, signal: AbortSignal): Promise<SandboxRecord[]> {
  const found: SandboxRecord[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
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

/**
 * Owns who waits for whom in a room: an agent that waits for a reply waits for whom it asked, one at a barrier for those who
 * are missing. A wait that would close a cycle would never end, and is refused with the cycle. Pure, in memory: a wait is a
 * request that is being answered, and ends with it.
 */
import { ServiceError } from "./service-error.ts";

export interface AgentWait {
  agent_id: string;
  /** Whom it waits for, as it is now. */
  on(): readonly string[];
  /** What presence shows of it. */
  shown: { type: "reply" | "barrier" | "inbox"; id: string | null };
}

export class WaitGraph {
  readonly #rooms = new Map<string, Map<string, Set<AgentWait>>>();

  /** Adds a wait; again does nothing. Throws deadlock_detected. */
  enter(roomUid: string, wait: AgentWait): void {
    const cycle = this.#cycle(roomUid, wait);
    if (cycle) {
      throw new ServiceError("deadlock_detected", {
        detail: `The wait would never end: ${cycle.join(" waits for ")}.`,
        details: { cycle },
        hint: "Answer the one who waits for you first, or wait without holding up others.",
      });
    }
    const room = this.#rooms.get(roomUid) ?? new Map<string, Set<AgentWait>>();
    this.#rooms.set(roomUid, room);
    const waits = room.get(wait.agent_id) ?? new Set();
    room.set(wait.agent_id, waits.add(wait));
  }

  leave(roomUid: string, wait: AgentWait): void {
    const room = this.#rooms.get(roomUid);
    const waits = room?.get(wait.agent_id);
    waits?.delete(wait);
    if (waits?.size === 0) room?.delete(wait.agent_id);
    if (room?.size === 0) this.#rooms.delete(roomUid);
  }

  /** What an agent waits for. */
  waitsOf(roomUid: string, agentId: string): AgentWait["shown"][] {
    return [...(this.#rooms.get(roomUid)?.get(agentId) ?? [])].map(({ shown }) => shown);
  }

  /** From the agent round to itself, or null. */
  #cycle(roomUid: string, wait: AgentWait): string[] | null {
    const room = this.#rooms.get(roomUid);
    const seen = new Set<string>();
    const search = (agentId: string, path: string[]): string[] | null => {
      if (agentId === wait.agent_id) return [...path, agentId];
      if (seen.has(agentId)) return null;
      seen.add(agentId);
      for (const other of room?.get(agentId) ?? []) {
        for (const next of other.on()) {
          const found = search(next, [...path, agentId]);
          if (found) return found;
        }
      }
      return null;
    };
    for (const first of wait.on()) {
      const found = search(first, [wait.agent_id]);
      if (found) return found;
    }
    return null;
  }
}

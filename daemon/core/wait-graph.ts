/**
 * Owns who waits for whom in a room: an agent that waits for a reply waits for whom it asked, one at a barrier for those who
 * are missing. A wait that would close a cycle would never end, and is refused with the cycle. Pure, in memory: a wait is a
 * request that is being answered, and ends with it.
 */
import { ServiceError } from "./service-error.ts";

export interface AgentWait {
  /** Who waits: one agent, or several who arrive somewhere together. */
  agents: readonly string[];
  /** Whom they wait for, as it is now. */
  on(): readonly string[];
  /** When it began. */
  since: string;
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
        detail: `This wait would never end: ${cycle.join(" waits for ")}.`,
        details: { cycle },
        hint: "First answer the agent that waits for you.",
      });
    }
    const room = this.#rooms.get(roomUid) ?? new Map<string, Set<AgentWait>>();
    this.#rooms.set(roomUid, room);
    for (const agentId of wait.agents) {
      const waits = room.get(agentId) ?? new Set();
      room.set(agentId, waits.add(wait));
    }
  }

  leave(roomUid: string, wait: AgentWait): void {
    const room = this.#rooms.get(roomUid);
    for (const agentId of wait.agents) {
      const waits = room?.get(agentId);
      waits?.delete(wait);
      if (waits?.size === 0) room?.delete(agentId);
    }
    if (room?.size === 0) this.#rooms.delete(roomUid);
  }

  /** What an agent waits for. */
  waitsOf(roomUid: string, agentId: string): AgentWait["shown"][] {
    return [...(this.#rooms.get(roomUid)?.get(agentId) ?? [])].map(({ shown }) => shown);
  }

  /** All waits of a room, each with everyone who waits. */
  all(roomUid: string): AgentWait[] {
    const waits = [...(this.#rooms.get(roomUid)?.values() ?? [])].flatMap((each) => [...each]);
    return [...new Set(waits)];
  }

  /** From one of the wait's agents round to itself, or null. Each agent and each wait is looked at once. */
  #cycle(roomUid: string, wait: AgentWait): string[] | null {
    const room = this.#rooms.get(roomUid);
    const own = new Set(wait.agents);
    const [first = ""] = wait.agents;
    /** By whom each was come to. */
    const from = new Map<string, string>();
    const looked = new Set<AgentWait>([wait]);
    const open = wait.on().map((next) => ({ by: first, next }));
    for (let step = open.pop(); step; step = open.pop()) {
      const { by, next } = step;
      if (own.has(next)) return [...pathTo(by, from, own, next), next];
      if (from.has(next)) continue;
      from.set(next, by);
      for (const other of room?.get(next) ?? []) {
        if (looked.has(other)) continue;
        looked.add(other);
        for (const following of other.on()) open.push({ by: next, next: following });
      }
    }
    return null;
  }
}

/** From `start`, one of the wait's own, to the agent `last`. */
function pathTo(last: string, from: ReadonlyMap<string, string>, own: ReadonlySet<string>, start: string): string[] {
  const path: string[] = [];
  for (let agentId = last; !own.has(agentId); agentId = String(from.get(agentId))) path.unshift(agentId);
  return [start, ...path];
}

/**
 * Wait-for graph of a room: an agent that waits for a reply waits for the recipient of its request, one at a barrier for the missing
 * agents. A wait that would close a cycle would never end, and is refused with the cycle. Pure, in memory: a wait is a request in progress,
 * and ends with it.
 */

import { monotonicMs } from "../clock.ts";
import { ServiceError } from "../service-error.ts";

export interface AgentWait {
  /** The waiting agents: one, or several that arrive somewhere together. */
  agents: readonly string[];
  /** The agents they currently wait for. */
  on(): readonly string[];
  /** Id of the awaited thing: waits for the same thing wait for the same agents. Null: for no particular agent. */
  about(): string | null;
  /** When it began. */
  since: string;
  /** Its form in presence. */
  shown: { type: "reply" | "barrier" | "inbox"; id: string | null };
}

/** Limits by kind of wait. Each new wait for agents is checked for cycles through all others; a message wakes all waits for messages. */
const LIMITS = {
  agents: { purpose: "for replies and at barriers", ofAgent: 128, ofRoom: 2048 },
  messages: { purpose: "for messages", ofAgent: 128, ofRoom: 10_000 },
} as const;
type Kind = keyof typeof LIMITS;

/** Time limit of one cycle search, within a transaction. A cycle not found in that time ends with the deadlines of its waits. */
const MAX_LOOK_MS = 10;

export class WaitGraph {
  readonly #rooms = new Map<string, Map<string, Set<AgentWait>>>();
  /** Number of waits by kind and room. */
  readonly #counts = { agents: new Map<string, number>(), messages: new Map<string, number>() };
  readonly #changed: (roomUid: string) => void;

  /** `changed` is called after a wait has started or ended. */
  constructor(changed: (roomUid: string) => void = () => {}) {
    this.#changed = changed;
  }

  /** Adds a wait; does nothing if it is already present. Throws deadlock_detected, quota_exceeded. */
  enter(roomUid: string, wait: AgentWait): void {
    const isNew = !this.#isIn(roomUid, wait);
    if (isNew) this.#requireSpace(roomUid, wait);
    const cycle = this.#cycle(roomUid, wait);
    if (cycle) {
      throw new ServiceError("deadlock_detected", {
        detail: `This wait would never end: ${cycle.join(" waits for ")}.`,
        details: { cycle },
        hint: "First answer the agent that waits for you.",
      });
    }
    if (!isNew) return;
    const room = this.#rooms.get(roomUid) ?? new Map<string, Set<AgentWait>>();
    this.#rooms.set(roomUid, room);
    this.#count(roomUid, kindOf(wait), 1);
    for (const agentId of wait.agents) {
      const waits = room.get(agentId) ?? new Set();
      room.set(agentId, waits.add(wait));
    }
    this.#changed(roomUid);
  }

  leave(roomUid: string, wait: AgentWait): void {
    if (!this.#isIn(roomUid, wait)) return;
    this.#count(roomUid, kindOf(wait), -1);
    const room = this.#rooms.get(roomUid);
    for (const agentId of wait.agents) {
      const waits = room?.get(agentId);
      waits?.delete(wait);
      if (waits?.size === 0) room?.delete(agentId);
    }
    if (room?.size === 0) this.#rooms.delete(roomUid);
    this.#changed(roomUid);
  }

  /** Counts a wait for all messages of a room; the returned function ends it. Throws quota_exceeded. */
  watch(roomUid: string): () => void {
    this.#requireRoom(roomUid, "messages");
    this.#count(roomUid, "messages", 1);
    return () => this.#count(roomUid, "messages", -1);
  }

  /** The waits of an agent. */
  waitsOf(roomUid: string, agentId: string): AgentWait["shown"][] {
    return [...(this.#rooms.get(roomUid)?.get(agentId) ?? [])].map(({ shown }) => shown);
  }

  /** All waits of a room, each with all its agents. */
  all(roomUid: string): AgentWait[] {
    const waits = [...(this.#rooms.get(roomUid)?.values() ?? [])].flatMap((each) => [...each]);
    return [...new Set(waits)];
  }

  #isIn(roomUid: string, wait: AgentWait): boolean {
    const room = this.#rooms.get(roomUid);
    return wait.agents.some((agentId) => room?.get(agentId)?.has(wait));
  }

  #count(roomUid: string, kind: Kind, by: number): void {
    const counts = this.#counts[kind];
    const count = (counts.get(roomUid) ?? 0) + by;
    if (count > 0) counts.set(roomUid, count);
    else counts.delete(roomUid);
  }

  #requireSpace(roomUid: string, wait: AgentWait): void {
    const kind = kindOf(wait);
    this.#requireRoom(roomUid, kind);
    const { ofAgent: cap } = LIMITS[kind];
    for (const agentId of wait.agents) {
      const used = [...(this.#rooms.get(roomUid)?.get(agentId) ?? [])].filter((other) => kindOf(other) === kind).length;
      if (used >= cap) throw tooMany(agentId, kind, used, cap);
    }
  }

  #requireRoom(roomUid: string, kind: Kind): void {
    const used = this.#counts[kind].get(roomUid) ?? 0;
    const { ofRoom: cap } = LIMITS[kind];
    if (used >= cap) throw tooMany("The room", kind, used, cap);
  }

  /** A cycle through one of the wait's agents, or null. Visits each agent, and each awaited thing, once. */
  #cycle(roomUid: string, wait: AgentWait): string[] | null {
    const room = this.#rooms.get(roomUid);
    const own = new Set(wait.agents);
    const [first = ""] = wait.agents;
    /** Predecessor of each visited agent. */
    const from = new Map<string, string>();
    const visited = new Set([wait.about()]);
    const open = wait.on().map((next) => ({ by: first, next }));
    const until = monotonicMs() + MAX_LOOK_MS;
    for (let step = open.pop(); step; step = open.pop()) {
      const { by, next } = step;
      if (own.has(next)) return [...pathTo(by, from, own, next), next];
      if (from.has(next)) continue;
      from.set(next, by);
      for (const other of room?.get(next) ?? []) {
        const about = other.about();
        if (about === null || visited.has(about)) continue;
        if (monotonicMs() > until) return null;
        visited.add(about);
        for (const following of other.on()) if (!from.has(following)) open.push({ by: next, next: following });
      }
    }
    return null;
  }
}

const kindOf = (wait: AgentWait): Kind => (wait.about() === null ? "messages" : "agents");

const tooMany = (holder: string, kind: Kind, used: number, cap: number) =>
  new ServiceError("quota_exceeded", {
    detail: `${holder} has ${used} waits ${LIMITS[kind].purpose} already, which is the maximum.`,
    details: { limit: "waits", used, cap },
    hint: "Wait for fewer at a time, or send without waiting and read the inbox.",
  });

/** Path from `start`, one of the wait's own agents, to the agent `last`. */
function pathTo(last: string, from: ReadonlyMap<string, string>, own: ReadonlySet<string>, start: string): string[] {
  const path: string[] = [];
  for (let agentId = last; !own.has(agentId); agentId = String(from.get(agentId))) path.unshift(agentId);
  return [start, ...path];
}

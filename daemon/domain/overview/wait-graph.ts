/** The wait graph of agents, for finding cycles in it. Pure. */
import type { Steps } from "../../core/loop/index.ts";
import type { Edges } from "./cycles.ts";
import type { Gathered } from "./gather.ts";

interface WaitGraph {
  edges: Edges;
  /** Waits that end only when each of those is done. */
  needed: Gathered[];
  isPart: boolean;
}

/**
 * A wait that any of several agents can end blocks on none of them. `most` bounds the waited-for agents that are examined, in all:
 * thousands can be at a barrier, and thousands missing. `isPart`: there are more.
 */
export function* edgesOf(waits: readonly Gathered[], most: number): Steps<WaitGraph> {
  const edges = new Map<string, Set<string>>();
  const needed = waits.filter(({ needsAll }) => needsAll);
  // An agent that waits for nothing is in no cycle.
  const waiting = new Set(needed.map(({ agent_id }) => agent_id));
  let left = most;
  for (const { agent_id, on } of needed) {
    yield;
    left -= on.length;
    if (left < 0) break;
    const known = edges.get(agent_id) ?? new Set();
    edges.set(agent_id, known);
    for (const each of on) if (waiting.has(each)) known.add(each);
  }
  return { edges, needed, isPart: left < 0 };
}

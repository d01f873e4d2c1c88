/**
 * Finds cycles of waits (deadlocks). Pure. Agents that can all reach one another by waits are one group (Tarjan's strongly connected
 * components); per group one short cycle is returned, enough to see which wait must be ended first. In some graphs the shortest cycle takes
 * long to find: then the shortest found so far is returned.
 */

import type { Steps } from "../../core/loop/index.ts";

/** The wait graph, by waiting agent. An agent that is only waited for need not be a key. */
export type Edges = ReadonlyMap<string, ReadonlySet<string>>;

/** Total waits that are examined to find shorter cycles: some ten milliseconds. */
const MAX_LOOKS = 200_000;
/** Waits that a step examines. */
const STEPS = 512;

/** One short ring of each group, each agent waiting for the next, the last for the first. By name, so that they are always alike. */
export function* ringsOf(edges: Edges): Steps<string[][]> {
  const looks = { left: MAX_LOOKS };
  const rings: string[][] = [];
  for (const group of yield* groupsOf(edges)) {
    const ring = yield* shortRing(edges, group, looks);
    if (ring.length > 0) rings.push(ring);
  }
  return rings.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
}

/** Whether there is any cycle; examines each wait once. */
export function* hasRing(edges: Edges): Steps<boolean> {
  const isRing = (group: Set<string>) => group.size > 1 || [...group].some((agent) => edges.get(agent)?.has(agent));
  return (yield* groupsOf(edges)).some(isRing);
}

interface VisitedAgent {
  index: number;
  low: number;
  isOpen: boolean;
}

/** With an explicit stack instead of recursion: a chain of waits may be long. */
function* groupsOf(edges: Edges): Steps<Set<string>[]> {
  const seen = new Map<string, VisitedAgent>();
  const open: string[] = [];
  const groups: Set<string>[] = [];
  let steps = 0;
  const visit = (agent: string) => {
    const own: VisitedAgent = { index: seen.size, low: seen.size, isOpen: true };
    seen.set(agent, own);
    open.push(agent);
    return { agent, own, next: (edges.get(agent) ?? []).values() };
  };
  for (const root of edges.keys()) {
    if (seen.has(root)) continue;
    const path = [visit(root)];
    for (let at = path.at(-1); at; at = path.at(-1)) {
      if (++steps % STEPS === 0) yield;
      const { value, done } = at.next.next();
      if (!done) {
        const known = seen.get(value);
        if (!known) path.push(visit(value));
        else if (known.isOpen) at.own.low = Math.min(at.own.low, known.index);
        continue;
      }
      path.pop();
      const before = path.at(-1);
      if (before) before.own.low = Math.min(before.own.low, at.own.low);
      if (at.own.low !== at.own.index) continue;
      const group = new Set(open.splice(open.lastIndexOf(at.agent)));
      for (const agent of group) (seen.get(agent) as VisitedAgent).isOpen = false;
      groups.push(group);
    }
  }
  return groups;
}

/** Empty for one agent that does not wait for itself. */
function* shortRing(edges: Edges, group: ReadonlySet<string>, looks: { left: number }): Steps<string[]> {
  let best: string[] = [];
  for (const start of [...group].sort()) {
    // The first search is unbounded and always finds a cycle.
    const isFirst = best.length === 0;
    const ring = yield* ringFrom(edges, group, start, isFirst ? group.size : best.length - 1, isFirst ? null : looks);
    if (ring) best = ring;
    // No cycle is shorter than one agent.
    if (best.length === 1 || looks.left <= 0) break;
  }
  return best;
}

/** A shortest cycle through `start` of at most `most` agents; null if absent, or if it takes too many looks. */
function* ringFrom(
  edges: Edges,
  group: ReadonlySet<string>,
  start: string,
  most: number,
  looks: { left: number } | null,
): Steps<string[] | null> {
  const from = new Map<string, string>();
  let reached = [start];
  let steps = 0;
  for (let length = 1; length <= most && reached.length > 0; length++) {
    const next: string[] = [];
    for (const agent of reached) {
      const waitsFor = edges.get(agent) ?? new Set();
      if (waitsFor.has(start)) return pathTo(agent, from);
      if (looks) looks.left -= waitsFor.size;
      if (looks && looks.left <= 0) return null;
      steps += waitsFor.size + 1;
      if (steps >= STEPS) {
        steps = 0;
        yield;
      }
      for (const each of waitsFor) {
        if (!group.has(each) || from.has(each)) continue;
        from.set(each, agent);
        next.push(each);
      }
    }
    reached = next;
  }
  return null;
}

function pathTo(last: string, from: ReadonlyMap<string, string>): string[] {
  const path: string[] = [];
  for (let agent: string | undefined = last; agent !== undefined; agent = from.get(agent)) path.unshift(agent);
  return path;
}

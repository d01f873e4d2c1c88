/**
 * Layout of the wait graph: the agents of a cycle on a separate circle, all others in columns, the waiting agent to the left of the awaited
 * one. Pure.
 */
import type { Cycle, Wait } from "../../../../shared/api/overview/overview.ts";

export interface Node {
  name: string;
  x: number;
  y: number;
  isInCycle: boolean;
}

export interface Arrow {
  from: Node;
  to: Node;
  isInCycle: boolean;
  waits: Wait[];
}

export interface Picture {
  nodes: Node[];
  arrows: Arrow[];
  width: number;
  height: number;
}

/** Width of a column, height of a line, and the margin around them. */
const COLUMN = 190;
const LINE = 54;
const EDGE = 40;
export const NODE = { width: 130, height: 30 };

/** Null if there is no agent to draw, or too many to be readable. */
export function pictureOf(waits: readonly Wait[], cycles: readonly Cycle[], most = 200): Picture | null {
  const between = waits.filter(({ on }) => on.length > 0);
  const names = [...new Set(between.flatMap(({ agent_id, on }) => [agent_id, ...on]))].sort();
  if (names.length === 0 || names.length > most) return null;
  const placed = new Map<string, Node>();
  const rings = ringsOf(cycles, placed);
  layers(names, between, placed, rings.height === 0 ? 0 : rings.height + EDGE);
  const nodes = [...placed.values()];
  const ringed = new Set(
    cycles.flatMap(({ agents }) => agents.map((each, n) => `${each} ${agents[(n + 1) % agents.length]}`)),
  );
  const arrows = new Map<string, Arrow>();
  for (const wait of between) {
    for (const other of wait.on) {
      const key = `${wait.agent_id} ${other}`;
      const [from, to] = [placed.get(wait.agent_id), placed.get(other)];
      if (!from || !to || from === to) continue;
      const arrow = arrows.get(key) ?? { from, to, isInCycle: ringed.has(key), waits: [] };
      arrow.waits.push(wait);
      arrows.set(key, arrow);
    }
  }
  const width = Math.max(...nodes.map(({ x }) => x)) + NODE.width / 2 + EDGE;
  const height = Math.max(...nodes.map(({ y }) => y)) + NODE.height / 2 + EDGE;
  return { nodes, arrows: [...arrows.values()], width, height };
}

/** Cycles side by side; an agent in two cycles is in the first. */
function ringsOf(cycles: readonly Cycle[], placed: Map<string, Node>): { height: number } {
  let left = EDGE;
  let height = 0;
  for (const { agents } of cycles) {
    const own = agents.filter((each) => !placed.has(each));
    if (own.length === 0) continue;
    const radius = Math.max(60, (own.length * (NODE.width + 20)) / (2 * Math.PI));
    const center = { x: left + radius + NODE.width / 2, y: EDGE + radius + NODE.height / 2 };
    for (const [n, name] of own.entries()) {
      const angle = (2 * Math.PI * n) / own.length - Math.PI / 2;
      placed.set(name, {
        name,
        x: center.x + radius * Math.cos(angle),
        y: center.y + radius * Math.sin(angle),
        isInCycle: true,
      });
    }
    left = center.x + radius + NODE.width / 2 + EDGE;
    height = Math.max(height, center.y + radius + NODE.height / 2);
  }
  return { height };
}

/** By the longest path to an agent that does not wait. */
function layers(names: readonly string[], waits: readonly Wait[], placed: Map<string, Node>, top: number): void {
  const others = names.filter((name) => !placed.has(name));
  const next = new Map<string, Set<string>>();
  for (const { agent_id, on } of waits) {
    const known = next.get(agent_id) ?? new Set();
    for (const each of on) if (!placed.has(each) && each !== agent_id) known.add(each);
    next.set(agent_id, known);
  }
  const depths = new Map<string, number>();
  const depthOf = (name: string, way: ReadonlySet<string>): number => {
    const known = depths.get(name);
    if (known !== undefined) return known;
    // Breaks a cycle that was not reported.
    if (way.has(name)) return 0;
    const beyond = [...(next.get(name) ?? [])].map((each) => 1 + depthOf(each, new Set([...way, name])));
    const depth = Math.max(0, ...beyond);
    depths.set(name, depth);
    return depth;
  };
  const deepest = Math.max(0, ...others.map((name) => depthOf(name, new Set())));
  const counts = new Map<number, number>();
  for (const name of others) {
    const column = deepest - (depths.get(name) ?? 0);
    const line = counts.get(column) ?? 0;
    counts.set(column, line + 1);
    const x = EDGE + NODE.width / 2 + column * COLUMN;
    placed.set(name, { name, x, y: top + EDGE + line * LINE, isInCycle: false });
  }
}

/** A slightly curved line from edge to edge, so that two opposite arrows are distinguishable. */
export function lineOf({ from, to }: Arrow): string {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const out = (node: Node, towards: 1 | -1) => {
    const scale = 1 / Math.max(Math.abs(dx) / (NODE.width / 2 + 6), Math.abs(dy) / (NODE.height / 2 + 6), 0.001);
    return { x: node.x + towards * dx * Math.min(scale, 0.5), y: node.y + towards * dy * Math.min(scale, 0.5) };
  };
  const [begin, end] = [out(from, 1), out(to, -1)];
  const bend = Math.min(30, length / 6);
  const middle = { x: (begin.x + end.x) / 2 + (dy / length) * bend, y: (begin.y + end.y) / 2 - (dx / length) * bend };
  const n = (value: number) => value.toFixed(1);
  return `M${n(begin.x)} ${n(begin.y)} Q${n(middle.x)} ${n(middle.y)} ${n(end.x)} ${n(end.y)}`;
}

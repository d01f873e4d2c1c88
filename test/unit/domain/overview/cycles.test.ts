/** Rings of agents that wait for each other, against a search that tries every way. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { wholly } from "../../../../daemon/core/loop/index.ts";
import { ringsOf } from "../../../../daemon/domain/overview/cycles.ts";
import { ringText, summaryText } from "../../../../daemon/domain/overview/summary.ts";

type Graph = Map<string, Set<string>>;

const graphOf = (edges: Record<string, string>): Graph =>
  new Map(Object.entries(edges).map(([from, to]) => [from, new Set(to.split(""))]));

describe("rings", () => {
  test.each<[string, Record<string, string>, string[]]>([
    ["no waits", {}, []],
    ["a chain has none", { a: "b", b: "c" }, []],
    ["a wait for oneself is a ring", { a: "a" }, ["a"]],
    ["two wait for each other", { a: "b", b: "a" }, ["ab"]],
    ["only the shortest ring of a group is reported", { a: "b", b: "cd", c: "a", d: "b" }, ["bd"]],
    ["each group has its own", { a: "b", b: "ac", c: "d", d: "c" }, ["ab", "cd"]],
    ["an agent that only waits for a ring is not in it", { x: "a", a: "b", b: "a" }, ["ab"]],
  ])("%s", (_, edges, expected) => {
    expect(wholly(ringsOf(graphOf(edges))).map((ring) => ring.join(""))).toEqual(expected);
  });

  test("a chain of ten thousand causes no recursion, and its ring is found", () => {
    const edges: Graph = new Map();
    for (let at = 0; at < 10_000; at++) edges.set(`a${at}`, new Set([`a${at + 1}`]));
    expect(wholly(ringsOf(edges))).toEqual([]);
    edges.set("a10000", new Set(["a9999"]));
    expect(wholly(ringsOf(edges))).toEqual([["a10000", "a9999"]]);
  });
});

/** Counts the visits of agents that others wait for. */
class Counted extends Set<string> {
  static looks = 0;
  override *[Symbol.iterator]() {
    for (const each of super.values()) {
      Counted.looks++;
      yield each;
    }
    return undefined;
  }
  override values() {
    return this[Symbol.iterator]();
  }
}

test("a thousand agents in ten barriers with only long rings take few steps", () => {
  const [layers, agents] = [10, 100];
  const edges = new Map<string, Set<string>>();
  for (let layer = 0; layer < layers; layer++) {
    const next = Array.from({ length: agents }, (_, n) => `${(layer + 1) % layers}-${n}`);
    for (let n = 0; n < agents; n++) edges.set(`${layer}-${n}`, new Counted(next));
  }
  Counted.looks = 0;
  expect(wholly(ringsOf(edges)).map((ring) => ring.length)).toEqual([layers]);
  expect(Counted.looks).toBeGreaterThan(layers * agents * agents);
  expect(Counted.looks).toBeLessThan(1_000_000);
});

/** All agents reachable from an agent, in one step or more. */
function reached(edges: Graph, from: string): Set<string> {
  const seen = new Set<string>();
  const open = [...(edges.get(from) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(edges.get(next) ?? []));
  }
  return seen;
}

/** The length of the shortest way from an agent back to itself, by trying every set of steps. */
function shortestBack(edges: Graph, start: string): number {
  let at = new Set([start]);
  for (let length = 1; ; length++) {
    at = new Set([...at].flatMap((each) => [...(edges.get(each) ?? [])]));
    if (at.has(start)) return length;
  }
}

const anyGraph = fc
  .array(fc.tuple(fc.nat(6), fc.nat(6)), { maxLength: 14 })
  .map((pairs) => Map.groupBy(pairs, ([from]) => `n${from}`))
  .map(
    (groups): Graph => new Map([...groups].map(([from, pairs]) => [from, new Set(pairs.map(([, to]) => `n${to}`))])),
  );

test("in any graph each group that waits for itself has one ring, which is real and shortest", () => {
  const holds = (edges: Graph) => {
    const inRings = [...edges.keys()].filter((name) => reached(edges, name).has(name)).sort();
    const groupOf = (name: string) =>
      inRings.filter((other) => reached(edges, name).has(other) && reached(edges, other).has(name));
    const groups = new Set(inRings.map((name) => groupOf(name).join()));
    const rings = wholly(ringsOf(edges));
    expect(rings).toHaveLength(groups.size);
    for (const group of groups) {
      const members = group.split(",");
      const [ring = [], ...more] = rings.filter((each) => each.every((name) => members.includes(name)));
      expect(more).toEqual([]);
      expect(ring).toHaveLength(Math.min(...members.map((name) => shortestBack(edges, name))));
      expect(new Set(ring).size).toBe(ring.length);
      for (const [at, name] of ring.entries()) {
        expect(edges.get(name)?.has(String(ring[(at + 1) % ring.length]))).toBe(true);
      }
    }
  };
  fc.assert(fc.property(anyGraph, holds), { numRuns: 2000 });
});

test("a ring is described in one sentence, and its waits in one paragraph", () => {
  const nowMs = Date.parse("2026-01-31T12:10:00.000Z");
  const rest = { held: false, about: "" };
  const waits = [
    { agent_id: "planner", type: "reply", id: "msg_1", on: ["worker"], since: "2026-01-31T12:06:00.000Z", ...rest },
    { agent_id: "worker", type: "barrier", id: "merged", on: ["planner"], since: "2026-01-31T12:07:59.000Z", ...rest },
  ] as const;
  const waitOf = (from: string) => waits.find(({ agent_id }) => agent_id === from);
  const text = ringText(["planner", "worker"], waitOf, nowMs);
  expect(text).toBe(
    "planner waits for worker (reply to msg_1, 4 min), worker waits for planner (barrier merged, 2 min).",
  );
  const shown = waits.map((wait) => ({ ...wait, on: [...wait.on] }));
  expect(summaryText(shown, [{ agents: ["planner", "worker"], text }], false, nowMs)).toBe(
    `2 waits of 2 agents. 1 deadlock: ${text} Agents in a deadlock continue only after one of them replies or arrives. The longest is planner, 4 min: reply to msg_1.`,
  );
  expect(summaryText([], [], false, nowMs)).toBe("No agent is waiting.");
});

/** The wait graph: each agent is in it once, cycles are drawn as circles, and a waiting agent is left of the awaited one. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { lineOf, NODE, pictureOf } from "../../../daemon/web/room/waits/graph.ts";
import type { Cycle, Wait } from "../../../shared/api/overview/overview.ts";

const wait = (agent_id: string, ...on: string[]): Wait => ({
  agent_id,
  type: "reply",
  id: null,
  on,
  since: "2026-01-31T12:00:00.000Z",
  held: false,
  about: "request",
});
const ring = (...agents: string[]): Cycle => ({ agents, text: "" });

test("a waiting agent is left of the awaited one", () => {
  const picture = pictureOf([wait("a", "b"), wait("b", "c"), wait("d", "c")], []);
  const x = Object.fromEntries((picture?.nodes ?? []).map((node) => [node.name, node.x]));
  expect(x.a).toBeLessThan(x.b as number);
  expect(x.b).toBeLessThan(x.c as number);
  expect(x.d).toBe(x.b);
});

test("a ring is drawn as one, and includes only its own arrows", () => {
  const picture = pictureOf([wait("a", "b"), wait("b", "a"), wait("c", "a")], [ring("a", "b")]);
  expect(picture?.nodes.filter(({ isInCycle }) => isInCycle).map(({ name }) => name)).toEqual(["a", "b"]);
  expect(picture?.arrows.map(({ from, to, isInCycle }) => `${from.name}${to.name}${isInCycle}`)).toEqual([
    "abtrue",
    "batrue",
    "cafalse",
  ]);
});

test("no agents overlap, for any waits, also in rings that were not reported", () => {
  const name = fc.integer({ min: 0, max: 12 }).map((n) => `agent-${n}`);
  const waits = fc.array(fc.tuple(name, fc.array(name, { minLength: 1, maxLength: 4 })), { maxLength: 25 });
  fc.assert(
    fc.property(waits, (all) => {
      const picture = pictureOf(
        all.map(([from, on]) => wait(from, ...on)),
        [],
      );
      const nodes = picture?.nodes ?? [];
      expect(new Set(nodes.map((each) => each.name)).size).toBe(nodes.length);
      for (const [n, one] of nodes.entries()) {
        for (const other of nodes.slice(n + 1)) {
          const isApart = Math.abs(one.x - other.x) >= NODE.width || Math.abs(one.y - other.y) >= NODE.height;
          expect([one.name, other.name, isApart]).toEqual([one.name, other.name, true]);
        }
      }
      for (const arrow of picture?.arrows ?? []) expect(lineOf(arrow)).toMatch(/^M[-\d.]+ [-\d.]+ Q/);
    }),
  );
});

test("too many agents to be visible are not drawn, nor is an empty graph", () => {
  expect(pictureOf([], [])).toBeNull();
  expect(
    pictureOf(
      Array.from({ length: 300 }, (_, n) => wait(`a${n}`, "b")),
      [],
    ),
  ).toBeNull();
});

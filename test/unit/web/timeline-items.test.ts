/** A timeline's items as they arrive: in any order, each once, up to a maximum. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  chosenOf,
  goesOn,
  Items,
  lanesOf,
  layable,
  MAX_ITEMS,
  stateOf,
} from "../../../daemon/web/room/timeline/items.ts";
import type { TimelineItem } from "../../../shared/timeline/item.ts";
import { STANDBY } from "../../../shared/timeline/words.ts";

const itemOf = (seq: number | null, ms: number): TimelineItem => ({
  seq,
  lane: "agent",
  agent_id: `agent-${ms % 3}`,
  kind: "mark",
  type: "message",
  at: new Date(ms).toISOString(),
  until: null,
  outcome: "success",
  title: "event to worker",
  to: [],
  ref: null,
  exit_code: null,
  trace_id: null,
});

test("are in the order of time, each once, for any order of arrival", () => {
  const piece = fc.array(fc.tuple(fc.nat(60), fc.nat(1000)), { maxLength: 20 });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const items = new Items();
      const times = new Map<number, number>();
      for (const each of pieces) {
        const fresh = new Map(each.filter(([seq]) => !times.has(seq)));
        for (const [seq, ms] of fresh) times.set(seq, ms);
        const more = each.map(([seq]) => itemOf(seq, times.get(seq) ?? 0));
        expect(items.add([...new Map(more.map((item) => [item.seq, item])).values()])).toBe(fresh.size);
      }
      const found = items.all.map(({ at }) => Date.parse(at));
      expect(found).toEqual([...times.values()].sort((one, other) => one - other));
      const laid = lanesOf(items.all.map(layable));
      expect(laid.flatMap((lane) => lane.items)).toHaveLength(times.size);
      for (const { items: own, reach } of laid) expect(reach).toEqual(own.map(({ to }) => to));
    }),
  );
});

test("open items are replaced by recorded ones", () => {
  const items = new Items();
  items.add([itemOf(1, 1), itemOf(null, 5), itemOf(2, 9)]);
  expect(items.open.map(({ at }) => Date.parse(at))).toEqual([5]);
  items.replaceOpen([]);
  expect(items.all.map(({ seq }) => seq)).toEqual([1, 2]);
});

test("open items are changed only if they differ", () => {
  const items = new Items();
  const wait = (agent_id: string, ms: number): TimelineItem => ({
    ...itemOf(null, ms),
    kind: "span",
    type: "wait",
    agent_id,
  });
  items.add([itemOf(1, 1)]);
  expect(items.replaceOpen([wait("a", 5), wait("b", 6)])).toBe(true);
  const { all } = items;
  expect(items.replaceOpen([wait("b", 6), wait("a", 5)])).toBe(false);
  expect(items.all).toBe(all);
  expect(items.replaceOpen([wait("a", 5), wait("b", 7)])).toBe(true);
  expect(items.replaceOpen([])).toBe(true);
  expect(items.all).toEqual([itemOf(1, 1)]);
});

test("an open item stays until it is recorded itself, even without a name", () => {
  const wait = (agent_id: string, ref: TimelineItem["ref"] = null): TimelineItem => ({
    ...itemOf(null, 5),
    ...{ kind: "span", type: "wait", agent_id, ref },
  });
  const barrier = { type: "barrier", id: "b" };
  const open = [wait("a"), wait("b"), wait("a", barrier), wait("b", barrier)];
  expect(goesOn(open, [{ ...wait("a"), seq: 1 }])).toEqual(open.slice(1));
  expect(goesOn(open, [{ ...wait("b", barrier), seq: 2 }])).toEqual(open.slice(0, 3));
  // To write to a command does not end it.
  const command: TimelineItem = { ...wait("a", { type: "execution", id: "exec_1" }), type: "command" };
  expect(goesOn([command], [{ ...command, seq: 3, kind: "mark" }])).toEqual([command]);
});

test("above the limit the oldest are dropped, and can be loaded again", () => {
  const items = new Items();
  const many = Array.from({ length: MAX_ITEMS + 10 }, (_, n) => itemOf(n + 1, n));
  items.add(many.slice(0, MAX_ITEMS));
  items.add(many.slice(MAX_ITEMS));
  expect([items.all.length, items.all[0]?.seq, items.all.at(-1)?.seq]).toEqual([MAX_ITEMS, 11, MAX_ITEMS + 10]);
  expect(items.add([itemOf(3, 2)])).toBe(1);
  expect(items.all.length).toBe(MAX_ITEMS);
});

test("are laid out once, and in their current state: a standby that was open, and has ended", () => {
  const items = new Items();
  const standby: TimelineItem = { ...itemOf(1, 1000), type: "standby", title: "standby", agent_id: "agent-0" };
  items.add([standby, itemOf(2, 2000)]);
  const [goesOn, mark] = items.laid;
  expect([goesOn?.to, mark?.to]).toEqual([Number.POSITIVE_INFINITY, 2000]);
  expect(items.laid[1]).toBe(mark);
  items.add([{ ...standby, seq: 3, at: new Date(5000).toISOString(), title: STANDBY.over }]);
  expect(items.laid.map(({ from, to }) => [from, to])).toEqual([
    [1000, 5000],
    [2000, 2000],
  ]);
  expect(items.laid[1]).toBe(mark);
});

test("of one agent and one type are selected, and all without a selection", () => {
  const items = new Items();
  items.add([itemOf(1, 1), itemOf(2, 2), { ...itemOf(3, 4), type: "command" }]);
  expect(chosenOf(items, { agent: "", type: "" }).lanes).toBe(items.lanes);
  const of = (agent: string, type: string) => chosenOf(items, { agent, type }).laid.map(({ item }) => item.seq);
  expect([of("agent-1", ""), of("", "command"), of("agent-2", "command")]).toEqual([[1, 3], [3], []]);
  expect([...items.agents].sort()).toEqual(["agent-1", "agent-2"]);
});

test("a failed item has its failure, an open one its state, and a success none", () => {
  const span = { ...itemOf(1, 0), kind: "span", type: "command", until: new Date(9).toISOString() } as const;
  expect(stateOf(span)).toBeNull();
  expect(stateOf({ ...span, exit_code: 0 })).toBeNull();
  expect(stateOf({ ...span, exit_code: 2 })).toEqual(["bad", "exit 2"]);
  expect(stateOf({ ...span, until: null })).toEqual(["busy", "running"]);
  expect(stateOf({ ...span, type: "wait", until: null })).toEqual(["wait", "waiting"]);
  expect(stateOf(itemOf(1, 0))).toBeNull();
});

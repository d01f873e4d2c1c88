/** How many calls begin in a turn of the event loop, and whose. */
import { expect, test } from "vitest";
import { Turns } from "../../../daemon/edge/turns.ts";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Enters so many calls of each organization at once; says in which turn each began. */
async function begun(calls: [org: string, count: number, isWithinRate: boolean][]) {
  const turns = new Turns();
  const began: { org: string; turn: number }[] = [];
  let turn = 0;
  let all = 0;
  for (const [org, count, isWithinRate] of calls) {
    for (let n = 0; n < count; n++) {
      all++;
      const wait = turns.enter(org, isWithinRate);
      if (wait) void wait.then(() => began.push({ org, turn }));
      else began.push({ org, turn });
    }
  }
  while (began.length < all) {
    turn++;
    await nextTurn();
  }
  return began;
}

const inTurn = (began: { turn: number }[]) =>
  began.reduce((counts: number[], { turn }) => Object.assign(counts, { [turn]: (counts[turn] ?? 0) + 1 }), []);

test("a few begin at once, and however many come, a turn has no more", async () => {
  expect(inTurn(await begun([["a", 10, true]]))).toEqual([10]);
  const counts = inTurn(await begun([["a", 1000, true]]));
  expect(Math.max(...counts)).toBeLessThanOrEqual(2 * 64);
  expect(counts.length).toBeGreaterThanOrEqual(8);
});

test("calls beyond their rate are few in a turn", async () => {
  expect(Math.max(...inTurn(await begun([["a", 100, false]])))).toBeLessThanOrEqual(2 * 4);
});

test("who comes last of another organization waits for one turn", async () => {
  for (const isWithinRate of [true, false]) {
    const began = await begun([
      ["a", 500, isWithinRate],
      ["b", 3, true],
    ]);
    const ofB = began.filter(({ org }) => org === "b").map(({ turn }) => turn);
    expect(Math.max(...ofB)).toBeLessThanOrEqual(isWithinRate ? 2 : 3);
    expect(Math.max(...began.map(({ turn }) => turn))).toBeGreaterThanOrEqual(4);
  }
});

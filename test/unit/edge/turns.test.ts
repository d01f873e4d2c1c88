/** How many calls begin in a turn of the event loop, and whose. */
import { expect, test } from "vitest";
import { Turns } from "../../../daemon/edge/turns.ts";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Enters so many calls of each organization at once; says in which turn each began. */
async function begun(calls: [org: string, count: number, isWithinRate: boolean][]) {
  const turns = new Turns(0);
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
  Object.values(Object.groupBy(began, ({ turn }) => turn)).map((together) => together?.length ?? 0);

test("a few begin at once, and however many come, a turn has no more", async () => {
  expect(inTurn(await begun([["a", 8, true]]))).toEqual([8]);
  const counts = inTurn(await begun([["a", 1000, true]]));
  expect(Math.max(...counts)).toBeLessThanOrEqual(2 * 8);
  expect(counts.length).toBeGreaterThanOrEqual(8);
});

test("a call beyond its rate waits, and none for it", async () => {
  const turns = new Turns(50);
  const startedAt = performance.now();
  const late = turns.enter("a", false);
  expect(turns.enter("a", true)).toBeNull();
  await late;
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(49);
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
    expect(Math.max(...ofB)).toBeLessThanOrEqual(2);
    expect(Math.max(...began.map(({ turn }) => turn))).toBeGreaterThanOrEqual(4);
  }
});

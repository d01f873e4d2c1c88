/** Work that is done once in a turn of the event loop. */
import { expect, test } from "vitest";
import { countInTurn, nextTurn, onceATurn } from "../../../../daemon/core/concurrency/next-turn.ts";

test("a result is cached for the turn, and calls are counted per turn", async () => {
  let callCount = 0;
  const ask = onceATurn(() => ++callCount);
  const count = countInTurn();
  expect([ask(), ask(), count(), count()]).toEqual([1, 1, 1, 2]);
  await nextTurn();
  expect([ask(), count()]).toEqual([2, 1]);
});

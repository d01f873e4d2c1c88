/** Owners take turns, whatever one of them has waiting. */
import { expect, test } from "vitest";
import { FairQueue } from "../../../../daemon/core/concurrency/fair-queue.ts";

const taken = (queue: FairQueue<{ name: string }>, count: number) =>
  Array.from({ length: count }, () => queue.take()?.name);

test("a lone owner gets its items in order; a second owner waits for one item", () => {
  const queue = new FairQueue<{ name: string }>();
  for (const name of ["a1", "a2", "a3", "a4"]) queue.add("a", { name });
  expect(taken(queue, 2)).toEqual(["a1", "a2"]);
  for (const name of ["b1", "b2"]) queue.add("b", { name });
  expect(taken(queue, 4)).toEqual(["a3", "b1", "a4", "b2"]);
  expect([queue.take(), queue.isEmpty]).toEqual([undefined, true]);
});

test("a removed item is never taken", () => {
  const queue = new FairQueue<{ name: string }>();
  const [first, second] = [{ name: "a1" }, { name: "a2" }];
  for (const item of [first, second]) queue.add("a", item);
  queue.remove("a", first);
  expect(taken(queue, 1)).toEqual(["a2"]);
  expect(queue.isEmpty).toBe(true);
});

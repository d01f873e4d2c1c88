import { expect, test } from "vitest";
import { Histogram } from "../../../daemon/core/histogram.ts";

test("a noted value counts for every bound that it does not exceed", () => {
  const times = new Histogram([0.1, 1, 10]);
  expect([times.atMost(), times.sum]).toEqual([[0, 0, 0, 0], 0]);
  for (const value of [0, 0.1, 0.5, 1, 9, 1000]) times.note(value);
  expect(times.atMost()).toEqual([2, 4, 5, 6]);
  expect(times.sum).toBeCloseTo(1010.6);
});

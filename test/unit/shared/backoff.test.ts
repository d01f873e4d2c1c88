/** Exponential backoff: doubled up to its maximum, with a jitter of a quarter around each delay. */
import { expect, test } from "vitest";
import { backoffMs, doubled } from "../../../shared/backoff.ts";

const DELAYS = { first: 100, most: 2000 } as const;

test("a delay is doubled for each attempt, and has a maximum after any number of them", () => {
  expect([0, 1, 2, 3, 4, 5, 6].map((attempt) => doubled(DELAYS, attempt))).toEqual([
    100, 200, 400, 800, 1600, 2000, 2000,
  ]);
  expect(doubled(DELAYS, 5000)).toBe(2000);
});

test("delays of clients that fail together spread over half of the interval, around its mean", () => {
  const spread = Array.from({ length: 4000 }, () => backoffMs(DELAYS, 2));
  expect(Math.min(...spread)).toBeGreaterThanOrEqual(300);
  expect(Math.max(...spread)).toBeLessThan(500);
  expect(Math.max(...spread) - Math.min(...spread)).toBeGreaterThan(180);
  expect(spread.reduce((sum, each) => sum + each) / spread.length).toBeCloseTo(400, -1);
});

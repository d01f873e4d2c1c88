/** How far a clock is from the database's: never more than is certain, however long the answer takes. */
import { expect, test } from "vitest";
import { aheadMs } from "../../../daemon/cluster/clock-error.ts";

test("a difference within the response time counts as none", () => {
  const interval = { before: 1_000_000, after: 1_003_000 };
  expect([1_000_000, 1_001_500, 1_003_000].map((database) => aheadMs(interval, database))).toEqual([0, 0, 0]);
  expect(aheadMs(interval, 990_000)).toBe(10_000);
  expect(aheadMs(interval, 1_013_000)).toBe(-10_000);
});

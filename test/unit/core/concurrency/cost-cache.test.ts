/** A cached result of a slow call: recomputed rarely, but never stale beyond its limit. */
import { expect, test } from "vitest";
import { cachedByCost } from "../../../../daemon/core/concurrency/cost-cache.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

/** Calls that take these times, one after another and the last of them from then on, by the test's clock; each returns its number. */
function looking(clock: MovedClock, ...tookMs: number[]) {
  let looks = 0;
  return cachedByCost(() => {
    clock.pass(tookMs[Math.min(looks, tookMs.length - 1)] ?? 0);
    return ++looks;
  });
}

test("a fast call is repeated each time, also after a slow one", () => {
  using clock = new MovedClock();
  const ask = looking(clock, 50, 4, 50, 50, 4);
  expect([ask(), ask(), ask(), ask(), ask(), ask()]).toEqual([1, 2, 3, 4, 5, 6]);
});

test.each([
  [20, 2_000],
  [200, 5_000],
])(
  "after three slow calls, calls of %i ms are %i ms apart, and no result is older than five seconds",
  (tookMs, apartMs) => {
    using clock = new MovedClock();
    const ask = looking(clock, tookMs);
    expect([ask(), ask(), ask(), ask()]).toEqual([1, 2, 3, 3]);
    clock.pass(apartMs - 1);
    expect(ask()).toBe(3);
    clock.pass(1);
    expect([ask(), ask()]).toEqual([4, 4]);
  },
);

test("a failed call is retried", () => {
  let fails = true;
  const ask = cachedByCost(() => {
    if (fails) throw new Error("not now");
    return "found";
  });
  expect(ask).toThrow("not now");
  fails = false;
  expect(ask()).toBe("found");
});

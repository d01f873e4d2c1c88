/** What takes long to look at is looked at seldom, and never so seldom that it is old. */
import { expect, test } from "vitest";
import { sparingly } from "../../../daemon/core/sparing.ts";

/** Looks that take so long, one after another and the last of these from then on, by a clock of their own; what one finds is its number. */
function looking(...tookMs: number[]) {
  let nowMs = 0;
  let looks = 0;
  const ask = sparingly(
    () => {
      nowMs += tookMs[Math.min(looks, tookMs.length - 1)] ?? 0;
      return ++looks;
    },
    () => nowMs,
  );
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { ask, pass };
}

test("what is short is looked at each time, also after one that was not", () => {
  const { ask } = looking(50, 4, 50, 50, 4);
  expect([ask(), ask(), ask(), ask(), ask(), ask()]).toEqual([1, 2, 3, 4, 5, 6]);
});

test.each([
  [20, 2_000],
  [200, 5_000],
])(
  "once there were three, looks of %i ms are %i ms apart, and no answer is older than five seconds",
  (tookMs, apartMs) => {
    const { ask, pass } = looking(tookMs);
    expect([ask(), ask(), ask(), ask()]).toEqual([1, 2, 3, 3]);
    pass(apartMs - 1);
    expect(ask()).toBe(3);
    pass(1);
    expect([ask(), ask()]).toEqual([4, 4]);
  },
);

test("one that fails is tried again", () => {
  let fails = true;
  const ask = sparingly(() => {
    if (fails) throw new Error("not now");
    return "found";
  });
  expect(ask).toThrow("not now");
  fails = false;
  expect(ask()).toBe("found");
});

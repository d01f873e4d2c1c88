/** What takes long to look at is looked at seldom, and never so seldom that it is old. */
import { expect, test } from "vitest";
import { sparingly } from "../../../daemon/core/sparing.ts";

/** Looks that take so long each, by a clock of their own; what one finds is its number. */
function looking(tookMs: number) {
  let nowMs = 0;
  let looks = 0;
  const ask = sparingly(
    () => {
      nowMs += tookMs;
      return ++looks;
    },
    () => nowMs,
  );
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { ask, pass };
}

test("a look of a millisecond holds for a hundred", () => {
  const { ask, pass } = looking(1);
  expect([ask(), ask()]).toEqual([1, 1]);
  pass(99);
  expect(ask()).toBe(1);
  pass(1);
  expect(ask()).toBe(2);
});

test("one that takes long holds for five seconds", () => {
  const { ask, pass } = looking(200);
  expect(ask()).toBe(1);
  pass(4_999);
  expect(ask()).toBe(1);
  pass(1);
  expect(ask()).toBe(2);
});

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

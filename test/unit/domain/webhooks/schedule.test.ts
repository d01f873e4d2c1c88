/** When what was not taken is tried again: by a clock of the test's own. */
import { expect, test } from "vitest";
import { askedSeconds, isGivenUp, nextTry } from "../../../../daemon/domain/webhooks/schedule.ts";

const BEGAN_MS = Date.UTC(2026, 0, 31, 12);
const DAY_MS = 86_400_000;

test("a receiver that never takes it is tried eight times in 20 hours, and no more", () => {
  const tries = [BEGAN_MS];
  for (let next = nextTry(1, BEGAN_MS, null); next !== null; next = nextTry(tries.length, Date.parse(next), null)) {
    tries.push(Date.parse(next));
  }
  const waits = tries.slice(1).map((at, n) => (at - (tries[n] ?? 0)) / 1000);
  expect(waits).toEqual([5, 60, 300, 1800, 7200, 21_600, 43_200]);
  expect(((tries.at(-1) ?? 0) - BEGAN_MS) / 3_600_000).toBeCloseTo(20.6, 1);
});

test("who asks for more time gets it, and for less does not", () => {
  expect(nextTry(1, BEGAN_MS, 60)).toBe("2026-01-31T12:01:00.000Z");
  expect(nextTry(3, BEGAN_MS, 60)).toBe("2026-01-31T12:05:00.000Z");
  expect(nextTry(8, BEGAN_MS, 60)).toBeNull();
});

test.each<[number, string | undefined, number | null]>([
  [429, "120", 120],
  [503, "120", 120],
  [500, "120", null],
  [429, undefined, null],
  [429, "0", 0],
  [429, "-5", 0],
  [429, "99999999", 43_200],
  [429, "soon", null],
  [503, "Sat, 31 Jan 2026 12:00:30 GMT", 30],
  [503, "Sat, 31 Jan 2026 11:00:00 GMT", 0],
])("of an answer %s with Retry-After %s so long is asked for: %s", (status, header, seconds) => {
  expect(askedSeconds(status, header, BEGAN_MS)).toBe(seconds);
});

test("it is given up after five days, and not a moment sooner", () => {
  const since = new Date(BEGAN_MS).toISOString();
  expect(isGivenUp(since, BEGAN_MS + 5 * DAY_MS - 1)).toBe(false);
  expect(isGivenUp(since, BEGAN_MS + 5 * DAY_MS)).toBe(true);
});

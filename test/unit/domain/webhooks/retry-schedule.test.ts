/** Times at which failed events are retried: by the test's own clock. */
import { expect, test } from "vitest";
import { askedSeconds, isGivenUp, nextTry } from "../../../../daemon/domain/webhooks/retry-schedule.ts";
import { MAX_TRIES } from "../../../../shared/api/webhooks.ts";

const BEGAN_MS = Date.UTC(2026, 0, 31, 12);
const DAY_MS = 86_400_000;

test("an event is retried with backoff, then every 12 hours, and outlives a receiver that accepts none", () => {
  const tries = [BEGAN_MS];
  while (tries.length < MAX_TRIES) tries.push(Date.parse(nextTry(tries.length, tries.at(-1) as number, null)));
  const waits = tries.slice(1).map((at, n) => (at - (tries[n] ?? 0)) / 1000);
  expect(waits).toEqual([5, 60, 300, 1800, 7200, 21_600, ...Array<number>(MAX_TRIES - 7).fill(43_200)]);
  // The last attempt comes when the receiver is abandoned, and the previous one does not.
  const since = new Date(BEGAN_MS).toISOString();
  expect(tries.slice(-2).map((at) => isGivenUp(since, at))).toEqual([false, true]);
});

test("a receiver's longer delay is used, and a shorter one is not", () => {
  expect(nextTry(1, BEGAN_MS, 60)).toBe("2026-01-31T12:01:00.000Z");
  expect(nextTry(3, BEGAN_MS, 60)).toBe("2026-01-31T12:05:00.000Z");
  expect(nextTry(8, BEGAN_MS, 60)).toBe("2026-02-01T00:00:00.000Z");
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
])("a response %s with Retry-After %s requests a delay of: %s", (status, header, seconds) => {
  expect(askedSeconds(status, header, BEGAN_MS)).toBe(seconds);
});

test("a webhook is disabled after five days, and not earlier", () => {
  const since = new Date(BEGAN_MS).toISOString();
  expect(isGivenUp(since, BEGAN_MS + 5 * DAY_MS - 1)).toBe(false);
  expect(isGivenUp(since, BEGAN_MS + 5 * DAY_MS)).toBe(true);
});

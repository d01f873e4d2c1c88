/** How often a key may call: its bucket, what is told of it, and what buckets take. */
import { expect, test } from "vitest";
import type { Caller } from "../../../daemon/core/operation.ts";
import { type Rate, RateLimit } from "../../../daemon/edge/rate-limit.ts";

const key = (name: string, first: string | null = null) =>
  ({ key_id: name, first_key_id: first }) as unknown as Pick<Caller, "key_id" | "first_key_id">;
const within = (rates: (Rate | null)[]) => rates.filter((rate) => rate?.isWithin).length;
const times = (count: number, limit: RateLimit, name: string, nowMs: number) =>
  Array.from({ length: count }, () => limit.take(key(name), nowMs));

test("a key has so many at once and so many a second, and is told what is left", () => {
  const limit = new RateLimit({ perSecond: 10, burst: 5 });
  expect(times(6, limit, "a", 0)).toEqual([
    { limit: 5, remaining: 4, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 3, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 2, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 1, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 0, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 0, reset_seconds: 1, isWithin: false },
  ]);
  // Another key is not held up.
  expect(limit.take(key("b"), 0)?.isWithin).toBe(true);
  // What is refused costs nothing.
  expect(within(times(5, limit, "a", 200))).toBe(2);
  expect(within(times(10, limit, "a", 60_000))).toBe(5);
});

test("over any time no more go through than were there at first and have been earned", () => {
  const limit = new RateLimit({ perSecond: 100, burst: 20 });
  let through = 0;
  for (let ms = 0; ms <= 10_000; ms++) through += within(times(3, limit, "a", ms));
  expect(through).toBeGreaterThanOrEqual(1018);
  expect(through).toBeLessThanOrEqual(1020);
});

test("a call too many is told when to come again", () => {
  const limit = new RateLimit({ perSecond: 10, burst: 1 });
  limit.require(limit.take(key("a"), 0));
  expect(() => limit.require(limit.take(key("a"), 0))).toThrowError(
    expect.objectContaining({ code: "rate_limited", options: expect.objectContaining({ retryAfterSeconds: 1 }) }),
  );
});

test("a key shares its bucket with those that it is rotated into", () => {
  const limit = new RateLimit({ perSecond: 1, burst: 2 });
  expect(limit.take(key("first"), 0)?.remaining).toBe(1);
  expect(limit.take(key("second", "first"), 0)?.remaining).toBe(0);
  expect(limit.take(key("third", "first"), 0)?.isWithin).toBe(false);
});

test("many keys take little memory, and who is at the limit stays there while the others' buckets are full", () => {
  const limit = new RateLimit({ perSecond: 1, burst: 2 });
  const last = 50_000;
  for (let n = 0; n <= last; n++) {
    limit.take(key(`kid_${n}`), n);
    expect(limit.take(key("busy"), n)?.isWithin ?? false).toBe(n < 2 || n % 1000 === 0);
  }
  expect(limit.size).toBeLessThanOrEqual(10_000);
});

test("0 is no limit", () => {
  const limit = new RateLimit({ perSecond: 0, burst: 5 });
  expect(new Set(times(100, limit, "a", 0))).toEqual(new Set([null]));
  expect(() => limit.require(null)).not.toThrow();
});

/** Rate limit of a key: its bucket, the reported balance, and the memory of buckets. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Caller } from "../../../../daemon/core/call/operation.ts";
import { type Rate, RateLimit } from "../../../../daemon/edge/pipeline/rate-limit.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

const key = (name: string, first: string | null = null) =>
  ({ key_id: name, first_key_id: first }) as unknown as Pick<Caller, "key_id" | "first_key_id">;
const within = (rates: (Rate | null)[]) => rates.filter((rate) => rate?.isWithin).length;
const times = (count: number, limit: RateLimit, name: string, nowMs = 0) => {
  clock.to(nowMs);
  return Array.from({ length: count }, () => limit.take(key(name)));
};

let clock: MovedClock;
beforeEach(() => {
  clock = new MovedClock();
});
afterEach(() => clock[Symbol.dispose]());

test("a key has a burst and a rate, and receives its remaining balance", () => {
  const limit = new RateLimit({ perSecond: 10, burst: 5 });
  expect(times(6, limit, "a")).toEqual([
    { limit: 5, remaining: 4, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 3, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 2, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 1, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 0, reset_seconds: 1, isWithin: true },
    { limit: 5, remaining: 0, reset_seconds: 1, isWithin: false },
  ]);
  // Another key is not held up.
  expect(limit.take(key("b"))?.isWithin).toBe(true);
  // A refused call costs nothing.
  expect(within(times(5, limit, "a", 200))).toBe(2);
  expect(within(times(10, limit, "a", 60_000))).toBe(5);
});

test("over any time no more calls pass than the burst and the rate allow", () => {
  const limit = new RateLimit({ perSecond: 100, burst: 20 });
  let through = 0;
  for (let ms = 0; ms <= 10_000; ms++) through += within(times(3, limit, "a", ms));
  expect(through).toBeGreaterThanOrEqual(1018);
  expect(through).toBeLessThanOrEqual(1020);
});

test("a call above the limit gets Retry-After", () => {
  const limit = new RateLimit({ perSecond: 10, burst: 1 });
  limit.require(limit.take(key("a")));
  expect(() => limit.require(limit.take(key("a")))).toThrowError(
    expect.objectContaining({ code: "rate_limited", options: expect.objectContaining({ retryAfterSeconds: 1 }) }),
  );
});

test("a call may cost several tokens or none; above a full bucket it leaves a debt", () => {
  const limit = new RateLimit({ perSecond: 10, burst: 5 });
  const take = (count: number, nowMs: number) => {
    clock.to(nowMs);
    return limit.takeMore(key("a"), limit.take(key("a")), count - 1);
  };
  expect(take(3, 0)).toMatchObject({ remaining: 2, isWithin: true });
  expect(take(4, 0)).toMatchObject({ remaining: 2, isWithin: false, retry_seconds: 1 });
  expect(take(2, 0)).toMatchObject({ remaining: 0, isWithin: true });
  // Ten is more than it ever has: a full bucket is enough, and the rest is earned back before anything else.
  expect(take(10, 400)?.isWithin).toBe(false);
  expect(take(10, 500)).toMatchObject({ remaining: 0, reset_seconds: 1, isWithin: true });
  expect(times(1, limit, "a", 1000)[0]?.isWithin).toBe(false);
  expect(times(1, limit, "a", 1100)[0]?.isWithin).toBe(true);
  // A refusal reports when the balance will be sufficient.
  const slow = new RateLimit({ perSecond: 1, burst: 100 });
  slow.takeMore(key("b"), slow.take(key("b")), 99);
  clock.pass(10_000);
  const refused = slow.takeMore(key("b"), slow.take(key("b")), 49);
  expect(() => slow.require(refused)).toThrowError(
    expect.objectContaining({ options: expect.objectContaining({ retryAfterSeconds: 40 }) }),
  );
  expect(slow.takeMore(key("b"), null, 5)).toBeNull();
});

test("a key shares its bucket with its rotated successors", () => {
  const limit = new RateLimit({ perSecond: 1, burst: 2 });
  expect(limit.take(key("first"))?.remaining).toBe(1);
  expect(limit.take(key("second", "first"))?.remaining).toBe(0);
  expect(limit.take(key("third", "first"))?.isWithin).toBe(false);
});

test("many keys take little memory, and a key at the limit stays so while full buckets are evicted", () => {
  const limit = new RateLimit({ perSecond: 1, burst: 2 });
  const last = 50_000;
  for (let n = 0; n <= last; n++) {
    clock.to(n);
    limit.take(key(`kid_${n}`));
    expect(limit.take(key("busy"))?.isWithin ?? false).toBe(n < 2 || n % 1000 === 0);
  }
  expect(limit.size).toBeLessThanOrEqual(10_000);
});

test("0 means no limit", () => {
  const limit = new RateLimit({ perSecond: 0, burst: 5 });
  expect(new Set(times(100, limit, "a"))).toEqual(new Set([null]));
  expect(() => limit.require(null)).not.toThrow();
});

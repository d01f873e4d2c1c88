/** How much a guest may say in a second: earned back with time, never more than a second's worth at once. */
import { expect, test } from "vitest";
import { Allowance, PRICE_PER_SECOND, priceOf } from "../../../../daemon/host/guest-link/pace.ts";
import { FrameType } from "../../../../shared/agent-protocol/frame.ts";

test("what is spent is earned back, and no more than there was", () => {
  const allowance = new Allowance(100, 20, 0);
  allowance.spend(20, 0);
  expect(allowance.debtMs(0)).toBe(0);
  expect(allowance.take(0)).toBe(false);
  expect(allowance.take(10)).toBe(true);
  allowance.spend(50, 10);
  expect(allowance.debtMs(10)).toBe(500);
  expect(allowance.debtMs(260)).toBe(250);
  expect([allowance.take(510), allowance.take(520)]).toEqual([false, true]);
  const taken = Array.from({ length: 100 }, () => allowance.take(1_000_000)).filter(Boolean);
  expect(taken).toHaveLength(20);
});

test("a clock that does not advance earns nothing", () => {
  const allowance = new Allowance(100, 1, 50);
  expect([allowance.take(50), allowance.take(50), allowance.take(40)]).toEqual([true, false, false]);
});

test("text costs what it takes to parse it, data what it takes to copy it", () => {
  expect(priceOf(FrameType.ping, 0)).toBe(1);
  expect(Math.floor(PRICE_PER_SECOND / priceOf(FrameType.open, 500))).toBe(516);
  expect(priceOf(FrameType.data, 65_537)).toBe(5);
  // Two of the dearest mebibytes of text are some tens of milliseconds of parsing.
  expect((PRICE_PER_SECOND / priceOf(FrameType.event, 65_536)) * 65_536).toBeLessThan(2 * 1024 * 1024);
  // A guest whose commands print as fast as they can is not slowed down.
  expect((PRICE_PER_SECOND / priceOf(FrameType.data, 65_537)) * 65_536).toBeGreaterThan(800 * 1024 * 1024);
});

/** Rate limit of a guest's messages: the balance is refilled with time, never above one second's worth. */
import { expect, test } from "vitest";
import { Allowance, PRICE_PER_SECOND, priceOf } from "../../../../daemon/host/guest-link/pace.ts";
import { FrameType } from "../../../../shared/agent-protocol/frame.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

test("a spent allowance is regained, up to the limit", () => {
  using clock = new MovedClock();
  const allowance = new Allowance(100, 20);
  const takenAt = (ms: number) => {
    clock.to(ms);
    return allowance.take();
  };
  allowance.spend(20);
  expect(allowance.debtMs()).toBe(0);
  expect([takenAt(0), takenAt(10)]).toEqual([false, true]);
  allowance.spend(50);
  expect(allowance.debtMs()).toBe(500);
  clock.to(260);
  expect(allowance.debtMs()).toBe(250);
  expect([takenAt(510), takenAt(520)]).toEqual([false, true]);
  clock.to(1_000_000);
  const taken = Array.from({ length: 100 }, () => allowance.take()).filter(Boolean);
  expect(taken).toHaveLength(20);
});

test("without elapsed time nothing is regained", () => {
  using _ = new MovedClock();
  const allowance = new Allowance(100, 1);
  expect([allowance.take(), allowance.take()]).toEqual([true, false]);
});

test("text is charged for its parsing, data for its copying", () => {
  expect(priceOf(FrameType.ping, 0)).toBe(1);
  expect(Math.floor(PRICE_PER_SECOND / priceOf(FrameType.open, 500))).toBe(516);
  expect(priceOf(FrameType.data, 65_537)).toBe(5);
  // Two of the dearest mebibytes of text are some tens of milliseconds of parsing.
  expect((PRICE_PER_SECOND / priceOf(FrameType.event, 65_536)) * 65_536).toBeLessThan(2 * 1024 * 1024);
  // A guest is not throttled if its commands print as fast as they can.
  expect((PRICE_PER_SECOND / priceOf(FrameType.data, 65_537)) * 65_536).toBeGreaterThan(800 * 1024 * 1024);
});

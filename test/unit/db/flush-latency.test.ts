/** When the event loop may wait for the disk, by a clock that the test moves. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { FlushLatency } from "../../../daemon/db/flush-latency.ts";
import { MovedClock } from "../../harness/hosts/moved-clock.ts";

let clock: MovedClock;
beforeEach(() => {
  clock = new MovedClock();
});
afterEach(() => clock[Symbol.dispose]());

/** This number of quick flushes, a millisecond apart. */
function quickFlushes(trust: FlushLatency, count: number): void {
  for (let n = 0; n < count; n++) {
    trust.took(0.2);
    clock.pass(1);
  }
}

function isQuickAt(trust: FlushLatency, ms: number): boolean {
  clock.to(ms);
  return trust.isQuick();
}

test("a new disk is trusted after a second and eight quick flushes", () => {
  const trust = new FlushLatency();
  const early = new FlushLatency();
  quickFlushes(early, 100);
  expect([isQuickAt(early, 999), isQuickAt(early, 1_000)]).toEqual([false, true]);
  expect(isQuickAt(trust, 5_000)).toBe(false);
  quickFlushes(trust, 7);
  expect(isQuickAt(trust, 5_100)).toBe(false);
  quickFlushes(trust, 1);
  expect(isQuickAt(trust, 5_200)).toBe(true);
});

test("one slow flush ends the trust, and the waiting time doubles up to a minute after premature trust", () => {
  const trust = new FlushLatency();
  const whiles: number[] = [];
  for (let round = 0; round < 9; round++) {
    const slowAtMs = performance.now();
    quickFlushes(trust, 8);
    while (!trust.isQuick()) clock.pass(1);
    whiles.push(performance.now() - slowAtMs);
    trust.took(2.1);
    expect(trust.isQuick()).toBe(false);
  }
  expect(whiles).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1000));
});

test("a slow flush in the thread restarts the waiting time at the same length", () => {
  const trust = new FlushLatency();
  clock.to(900);
  trust.took(500);
  quickFlushes(trust, 8);
  expect([isQuickAt(trust, 1_899), isQuickAt(trust, 1_900)]).toEqual([false, true]);
});

/** Delay of the event loop: a timer that fires late was blocked by other work, and so were the callers. */

import { monotonicMs, startInterval, stopTimer } from "../clock.ts";
import { Histogram } from "../histogram.ts";

const EVERY_MS = 500;
const BOUNDS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface LoopDelay {
  /** In seconds. */
  delays: Histogram;
  stop(): void;
}

export function watchLoopDelay(): LoopDelay {
  const delays = new Histogram(BOUNDS_SECONDS);
  let before = monotonicMs();
  const timer = startInterval(() => {
    const now = monotonicMs();
    delays.note(Math.max(0, now - before - EVERY_MS) / 1000);
    before = now;
  }, EVERY_MS);
  return { delays, stop: () => stopTimer(timer) };
}

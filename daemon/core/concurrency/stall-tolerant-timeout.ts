/**
 * A timeout that tolerates stalls of our own event loop: a blocked loop counts as one of ten ticks, so replies that arrived meanwhile are
 * still processed.
 */
import { startInterval, stopTimer } from "../clock.ts";

/** Number of ticks of a timeout. */
const PIECES = 10;

/** Calls `over` after `ms`, and returns a function that cancels it. */
export function stallTolerantTimeout(ms: number, over: () => void): () => void {
  let left = PIECES;
  const timer = startInterval(() => {
    if (--left > 0) return;
    stopTimer(timer);
    over();
  }, ms / PIECES);
  return () => stopTimer(timer);
}

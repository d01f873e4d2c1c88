/**
 * Owns waiting for others by the time that this process has had itself. While it is held up they may have answered long ago, and nobody
 * has heard it: that counts as one piece of the time, and is heard in those that follow.
 */
import { startInterval, stopTimer } from "./clock.ts";

/** In so many pieces it passes. */
const PIECES = 10;

/** Calls `over` after so long, and returns what ends it. */
export function afterOwnTime(ms: number, over: () => void): () => void {
  let left = PIECES;
  const timer = startInterval(() => {
    if (--left > 0) return;
    stopTimer(timer);
    over();
  }, ms / PIECES);
  return () => stopTimer(timer);
}

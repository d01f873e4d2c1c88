/** Periodic tasks without concurrent runs. An error of one run does not prevent the next. */
import { startInterval, startTimer, stopTimer } from "../clock.ts";

/** However short the interval is. */
const SHORTEST_MS = 250;

/** Runs immediately, and again `intervalMs` after the end of each run; the returned function stops it. `work` must not reject. */
export function repeat(intervalMs: number, work: () => Promise<void>): () => void {
  let timer: Timer | undefined;
  let stopped = false;
  const go = async () => {
    await work();
    if (!stopped) timer = startTimer(go, Math.max(intervalMs, SHORTEST_MS));
  };
  void go();
  return () => {
    stopped = true;
    stopTimer(timer);
  };
}

/** Runs a short synchronous task at an interval; the returned function stops it. Its errors go to `onError` only. */
export function every(intervalMs: number, work: () => void, onError: (error: unknown) => void): () => void {
  const timer = startInterval(() => {
    try {
      work();
    } catch (error) {
      onError(error);
    }
  }, intervalMs);
  return () => stopTimer(timer);
}

/** Repeats a task, never twice at once. What one time throws does not keep the next from coming. */
import { startInterval, startTimer, stopTimer } from "./clock.ts";

/** However short the interval is. */
const SHORTEST_MS = 250;

/** Does it at once, and again so long after the end of each time; what is returned ends that. `work` must not reject. */
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

/** Does what takes no time every so often; what is returned ends that. What it throws is heard, and nobody else's trouble. */
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

/** Repeats a task, never twice at once. */

/** However short the interval is. */
const SHORTEST_MS = 250;

/** Does it at once, and again so long after the end of each time; what is returned ends that. `work` must not reject. */
export function repeat(intervalMs: number, work: () => Promise<void>): () => void {
  let timer: Timer | undefined;
  let stopped = false;
  const go = async () => {
    await work();
    if (!stopped) timer = setTimeout(go, Math.max(intervalMs, SHORTEST_MS));
  };
  void go();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

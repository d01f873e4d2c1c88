/** Cost-limited cache of an expensive check that any caller may request: so rare that it blocks no other work. */
import { monotonicMs } from "../clock.ts";

/** A shorter check is not cached. */
const SHORT_MS = 5;
/** Number of consecutive slow checks before caching: the first ones are slow, and any may run alongside other work. */
const LONG_IN_A_ROW = 3;
/** Maximum share of the time spent in `look`, as long as results do not exceed their maximum age. */
const SHARE = 1 / 100;
/** Maximum age of a result, regardless of the duration of `look`. */
const OLDEST_MS = 5_000;

/** Returns a version of `look` that returns its last result, while calls are slow, until it has expired. */
export function cachedByCost<T>(look: () => T): () => T {
  const took: number[] = [];
  let found: { value: T; until: number } | null = null;
  return () => {
    const startedAt = monotonicMs();
    if (found && startedAt < found.until) return found.value;
    const value = look();
    const ended = monotonicMs();
    took.push(ended - startedAt);
    if (took.length > LONG_IN_A_ROW) took.shift();
    const shortest = Math.min(...took);
    const isLong = took.length === LONG_IN_A_ROW && shortest >= SHORT_MS;
    found = isLong ? { value, until: ended + Math.min(shortest / SHARE, OLDEST_MS) } : null;
    return value;
  };
}

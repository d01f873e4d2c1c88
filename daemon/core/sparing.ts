/** Owns looking at what takes long to look at, and is asked for by whoever likes: no more often than costs little. */

/** Of the time, at most this part goes by with looking. */
const SHARE = 1 / 100;
/** No answer is older, however long a look takes. */
const OLDEST_MS = 5_000;

/** Makes what says what `look` has found, which looks again once a hundred times as long has passed as the last look took. */
export function sparingly<T>(look: () => T, clock = () => performance.now()): () => T {
  let found: { value: T; until: number } | null = null;
  return () => {
    const begun = clock();
    if (found && begun < found.until) return found.value;
    const value = look();
    const ended = clock();
    found = { value, until: ended + Math.min((ended - begun) / SHARE, OLDEST_MS) };
    return value;
  };
}

/** Helpers for turns of the event loop: once per turn, and waiting for the next turn. Long work uses Pieces. */

/** Resolves in the next turn. */
export const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Caches the result of the callback within a turn of the event loop; a later turn calls it again. */
export function onceATurn<T>(ask: () => T): () => T {
  let cached: { value: T } | null = null;
  return () => {
    if (cached === null) {
      cached = { value: ask() };
      setImmediate(() => {
        cached = null;
      });
    }
    return cached.value;
  };
}

/** Returns a counter that restarts in each turn of the event loop: each call returns its number within the turn, from 1. */
export function countInTurn(): () => number {
  let count = 0;
  const reset = () => {
    count = 0;
  };
  return () => {
    if (count === 0) setImmediate(reset);
    return ++count;
  };
}

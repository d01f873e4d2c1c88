/** Turns of the event loop: doing something once in a turn, and waiting for the next one. Long work goes by Pieces. */

/** Resolves in the next turn. */
export const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Caches the result of the callback within a turn of the event loop; a later turn calls it again. */
export function onceATurn<T>(ask: () => T): () => T {
  let said: { value: T } | null = null;
  return () => {
    if (said === null) {
      said = { value: ask() };
      setImmediate(() => {
        said = null;
      });
    }
    return said.value;
  };
}

/** Counts calls by turns of the event loop: each call returns its number within the turn, from 1 on. */
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

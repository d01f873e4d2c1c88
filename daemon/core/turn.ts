/** Owns what has to do with turns of the event loop: asking something once in one, and letting others have theirs. */

/** What `ask` said in this turn; asked again in a later one. */
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

/** Resolves once everybody else has had a turn: for work that takes long and waits for nothing. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

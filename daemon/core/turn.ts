/** Owns asking something once in a turn of the event loop, however many requests want to know. */

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

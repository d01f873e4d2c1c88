/** Yields to the event loop; resolves in a later turn. For long work that is done in parts. */
export const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

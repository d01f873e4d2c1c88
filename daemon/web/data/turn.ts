/** Resolves in a turn of its own, once what waits has had its: what takes long is done in parts. */
export const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

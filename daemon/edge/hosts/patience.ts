/** Owns how long a host is waited for by who can do without it: one that did not answer the last time, hardly at all. */

const SILENT_MS = 100;

export class Patience {
  /** Those that did not answer the last time. */
  readonly #silent = new Set<string>();

  /** Null: it has not answered within the time, or has failed; what comes of it later is still heard. Never rejects. */
  async until<T>(hostId: string, asked: Promise<T>, withinMs: number): Promise<T | null> {
    const answered = asked.then(
      (answer) => {
        this.#silent.delete(hostId);
        return answer;
      },
      () => null,
    );
    const late = Promise.withResolvers<null>();
    const timer = setTimeout(() => late.resolve(null), this.#silent.has(hostId) ? SILENT_MS : withinMs);
    const answer = await Promise.race([answered, late.promise]);
    clearTimeout(timer);
    if (answer === null) this.#silent.add(hostId);
    return answer;
  }
}

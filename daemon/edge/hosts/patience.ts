/** Owns how long a host is waited for by who can do without it: one that did not answer the last time, hardly at all. */
import { afterOwnTime } from "../../core/own-time.ts";

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
    const end = afterOwnTime(this.#silent.has(hostId) ? SILENT_MS : withinMs, () => late.resolve(null));
    const answer = await Promise.race([answered, late.promise]);
    end();
    if (answer === null) this.#silent.add(hostId);
    return answer;
  }
}

/** Adaptive timeout for optional responses of hosts: very short for a host that did not answer the last time. */
import { stallTolerantTimeout } from "../../core/concurrency/stall-tolerant-timeout.ts";

const SILENT_MS = 100;

export class AdaptiveTimeout {
  /** Hosts that did not answer the last time. */
  readonly #silent = new Set<string>();

  /** Null: it timed out or failed; a late response still counts as a sign of life. Never rejects. */
  async until<T>(hostId: string, pending: Promise<T>, withinMs: number): Promise<T | null> {
    const answered = pending.then(
      (answer) => {
        this.#silent.delete(hostId);
        return answer;
      },
      () => null,
    );
    const late = Promise.withResolvers<null>();
    const end = stallTolerantTimeout(this.#silent.has(hostId) ? SILENT_MS : withinMs, () => late.resolve(null));
    const answer = await Promise.race([answered, late.promise]);
    end();
    if (answer === null) this.#silent.add(hostId);
    return answer;
  }
}

/** Options shared by the calls of one method: one deadline for all, and a separate key for each. */
import { TimeoutError } from "./errors.ts";
import { type CallOptions, DEFAULT_TIMEOUT_MS, longestWaitOf } from "./transport.ts";

export class Calls {
  readonly #options: CallOptions;
  readonly #timeoutMs: number;
  readonly #deadline: number;
  #count = 0;

  constructor(options: CallOptions = {}) {
    const timeoutMs = longestWaitOf(options) ?? DEFAULT_TIMEOUT_MS;
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    this.#deadline = performance.now() + timeoutMs;
  }

  /** Remaining time. Throws a TimeoutError if it is 0. */
  get leftMs(): number {
    const left = this.#deadline - performance.now();
    if (left <= 0) throw new TimeoutError(`It was not done within ${this.#timeoutMs} ms.`);
    return left;
  }

  /** Options of the next call. Throws TimeoutError if no time remains. */
  next(): CallOptions {
    const { signal, headers, retry, idempotencyKey } = this.#options;
    this.#count++;
    return {
      waitMs: this.leftMs,
      ...(signal ? { signal } : {}),
      ...(headers ? { headers } : {}),
      ...(retry ? { retry } : {}),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey: `${idempotencyKey}-${this.#count}` }),
    };
  }
}

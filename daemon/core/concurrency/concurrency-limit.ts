/** Concurrency limit per name. When no slot is free the caller is refused. */
import type { ServiceError } from "../service-error.ts";

export class ConcurrencyLimit {
  readonly #most: number;
  readonly #refusal: () => ServiceError;
  readonly #taken = new Map<string, number>();

  constructor(most: number, refusal: () => ServiceError) {
    this.#most = most;
    this.#refusal = refusal;
  }

  /** Takes `count` slots; the returned function releases them, once. Throws the refusal. */
  take(name: string, count = 1): () => void {
    const before = this.#taken.get(name) ?? 0;
    if (before + count > this.#most) throw this.#refusal();
    this.#taken.set(name, before + count);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const left = (this.#taken.get(name) ?? 0) - count;
      if (left > 0) this.#taken.set(name, left);
      else this.#taken.delete(name);
    };
  }
}

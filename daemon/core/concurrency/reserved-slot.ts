/**
 * A slot that one owner holds at a time, without waiting. A refusal reserves a later turn for its owner, after owners refused earlier, as
 * long as the owner keeps retrying. So the fastest retrier cannot take the slot repeatedly.
 */

import { monotonicMs } from "../clock.ts";
import type { ServiceError } from "../service-error.ts";

/** Time for which the slot is reserved for a refused owner's retry. */
const KEPT_MS = 60_000;

export class ReservedSlot {
  readonly #refusal: () => ServiceError;
  #holder: string | null = null;
  /** Time of the last refusal by owner, in the order of first refusals. */
  readonly #refused = new Map<string, number>();

  constructor(refusal: () => ServiceError) {
    this.#refusal = refusal;
  }

  /** Takes the slot and returns a function that releases it. Throws the refusal error. */
  take(owner: string): () => void {
    const nowMs = monotonicMs();
    for (const [other, at] of this.#refused) if (nowMs - at > KEPT_MS) this.#refused.delete(other);
    const [next = owner] = this.#refused.keys();
    if (this.#holder !== null || next !== owner) {
      // It has its turn now.
      if (this.#holder !== owner) this.#refused.set(owner, nowMs);
      throw this.#refusal();
    }
    this.#refused.delete(owner);
    this.#holder = owner;
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      this.#holder = null;
    };
  }
}

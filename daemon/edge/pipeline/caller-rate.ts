/**
 * The rate limit that applies to a call: one for API keys, another for guests that call their room. Buckets and refusals are in
 * rate-limit.ts.
 */
import type { Caller } from "../../core/call/operation.ts";
import { type Rate, RateLimit, type RateLimits } from "./rate-limit.ts";

export interface RatesOf {
  keys: RateLimits;
  guests: RateLimits;
}

export class Rates {
  readonly #keys: RateLimit;
  readonly #guests: RateLimit;

  constructor({ keys, guests }: RatesOf) {
    this.#keys = new RateLimit(keys, "key");
    this.#guests = new RateLimit(guests, "sandbox");
  }

  /** Takes a token of the caller's; null if there is no limit. */
  take(caller: Caller): Rate | null {
    return this.#of(caller).take(caller);
  }

  /** Takes `count` more, for a call that counts as several. */
  takeMore(caller: Caller, first: Rate | null, count: number): Rate | null {
    return this.#of(caller).takeMore(caller, first, count);
  }

  /** Throws rate_limited if the call exceeds the rate. */
  require(caller: Caller | null, rate: Rate | null): void {
    if (caller) this.#of(caller).require(rate);
  }

  #of({ kind }: Caller): RateLimit {
    return kind === "sandbox" ? this.#guests : this.#keys;
  }
}

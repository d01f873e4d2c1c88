/**
 * Rate limit for invalid credentials per address. Above the limit it gets 429 instead of 401. Callers with a valid key are not affected by
 * others at the same address: behind a proxy all have one.
 */
import { ServiceError } from "../../core/service-error.ts";
import { AddressLimit } from "./address-limit.ts";

export class LoginLimit {
  readonly #perMinute: number;
  readonly #failures: AddressLimit;

  /** 0: no limit. */
  constructor(perMinute: number) {
    this.#perMinute = perMinute;
    this.#failures = new AddressLimit(perMinute * 60, perMinute);
  }

  /** Before expensive work, such as comparing a password. Throws rate_limited if the address has failed too often. */
  require(ip: string | null): void {
    if (ip !== null && !this.#failures.has(ip)) throw this.#refusal();
  }

  /** Counts a failure. Throws rate_limited. */
  fail(ip: string | null): void {
    if (this.#perMinute === 0 || ip === null) return;
    if (!this.#failures.take(ip)) throw this.#refusal();
  }

  #refusal(): ServiceError {
    return new ServiceError("rate_limited", {
      detail: "Too many requests from this address had an invalid key or a wrong password.",
      retryAfterSeconds: Math.ceil(60 / this.#perMinute),
    });
  }
}

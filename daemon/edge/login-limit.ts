/**
 * Limits how often an address may try invalid credentials. Above the limit it gets 429 instead of 401.
 * Who comes with a good key is never held up by others at the same address: behind a proxy all have one.
 */
import { ServiceError } from "../core/service-error.ts";
import { readAddress } from "../domain/egress/addresses.ts";
import { Allowance } from "../host/guest-link/pace.ts";

/** Beyond, the address that failed longest ago is forgotten. */
const MOST_ADDRESSES = 10_000;
/** One who has an IPv6 address usually has all of its network of 2^64. */
const HOST_BITS = 64n;

export class LoginLimit {
  readonly #perMinute: number;
  /** The one that failed last comes last. */
  readonly #addresses = new Map<string, Allowance>();

  /** With 0 there is none. */
  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Before work that is dear, as comparing a password is. Throws rate_limited where the address has failed too often. */
  require(ip: string | null): void {
    if (ip === null || this.#addresses.get(networkOf(ip))?.has() !== false) return;
    throw this.#refusal();
  }

  /** Counts a failure. Throws rate_limited. */
  fail(ip: string | null): void {
    if (this.#perMinute === 0 || ip === null) return;
    const name = networkOf(ip);
    const allowance = this.#addresses.get(name) ?? new Allowance(this.#perMinute / 60, this.#perMinute);
    this.#addresses.delete(name);
    this.#addresses.set(name, allowance);
    for (const oldest of this.#addresses.keys()) {
      if (this.#addresses.size <= MOST_ADDRESSES) break;
      this.#addresses.delete(oldest);
    }
    if (!allowance.take()) throw this.#refusal();
  }

  #refusal(): ServiceError {
    return new ServiceError("rate_limited", {
      detail: "Too many requests from this address had no valid key, or no right password.",
      retryAfterSeconds: Math.ceil(60 / this.#perMinute),
    });
  }
}

/** What one client has of addresses: an IPv4 address, or a network of IPv6. */
export function networkOf(ip: string): string {
  const address = readAddress(ip);
  return address?.family === 6 ? `${address.value >> HOST_BITS}::` : (address?.text ?? ip);
}

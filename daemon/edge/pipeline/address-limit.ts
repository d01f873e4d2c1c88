/** Rate limit per address: a burst, and a number per hour. */
import { networkOf } from "../../domain/egress/addresses.ts";
import { Allowance } from "../../host/guest-link/pace.ts";

/** Above this, the least recently used address is evicted. */
const MAX_ADDRESSES = 10_000;

export class AddressLimit {
  readonly #perHour: number;
  readonly #atOnce: number;
  /** In LRU order, the most recent last. */
  readonly #addresses = new Map<string, Allowance>();

  constructor(perHour: number, atOnce: number) {
    this.#perHour = perHour;
    this.#atOnce = atOnce;
  }

  /** Whether it may once more. */
  has(ip: string): boolean {
    return this.#addresses.get(networkOf(ip))?.has() !== false;
  }

  /** Counts it. False: it was once too often. */
  take(ip: string): boolean {
    const name = networkOf(ip);
    const allowance = this.#addresses.get(name) ?? new Allowance(this.#perHour / 3600, this.#atOnce);
    this.#addresses.delete(name);
    this.#addresses.set(name, allowance);
    for (const oldest of this.#addresses.keys()) {
      if (this.#addresses.size <= MAX_ADDRESSES) break;
      this.#addresses.delete(oldest);
    }
    return allowance.take();
  }
}

/** Rate limit per address: a burst, and a number per hour. */
import { LRUCache } from "lru-cache";
import { networkOf } from "../../domain/egress/addresses.ts";
import { Allowance } from "../../host/guest-link/pace.ts";

/** Above this, the least recently used address is evicted. */
const MAX_ADDRESSES = 10_000;

export class AddressLimit {
  readonly #perHour: number;
  readonly #atOnce: number;
  readonly #addresses = new LRUCache<string, Allowance>({ max: MAX_ADDRESSES });

  constructor(perHour: number, atOnce: number) {
    this.#perHour = perHour;
    this.#atOnce = atOnce;
  }

  /** Whether it may once more. */
  has(ip: string): boolean {
    return this.#addresses.peek(networkOf(ip))?.has() !== false;
  }

  /** Counts a request of the address; false if the limit is exceeded. */
  take(ip: string): boolean {
    const name = networkOf(ip);
    const allowance = this.#addresses.get(name) ?? new Allowance(this.#perHour / 3600, this.#atOnce);
    this.#addresses.set(name, allowance);
    return allowance.take();
  }
}

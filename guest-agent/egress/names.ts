/**
 * Maps host names to placeholder addresses inside this guest. For a name, the guest's programs get an address of this range, so that a
 * connection identifies the name that was resolved; only the host has the real addresses.
 */

/** 198.18.0.0/15, reserved for tests between networks: never an address of the internet. */
const FIRST = 198 * 2 ** 24 + 18 * 2 ** 16;
/** Names in the cache; the least recently used one is evicted first. */
const MAX_NAMES = 65_536;

export class Names {
  readonly #addresses = new Map<string, number>();
  readonly #names = new Map<number, string>();
  #next = 1;

  /** The placeholder address of the name, as a number. */
  addressOf(name: string): number {
    const known = this.#addresses.get(name);
    if (known !== undefined) {
      this.#addresses.delete(name);
      this.#addresses.set(name, known);
      return known;
    }
    const address = this.#free();
    this.#addresses.set(name, address);
    this.#names.set(address, name);
    return address;
  }

  /** Null for an address without a name. */
  nameOf(address: Uint8Array): string | null {
    if (address.byteLength !== 4) return null;
    return this.#names.get(new DataView(address.buffer, address.byteOffset).getUint32(0)) ?? null;
  }

  #free(): number {
    if (this.#next <= MAX_NAMES) return FIRST + this.#next++;
    const [oldest = ["", 0]] = this.#addresses;
    this.#addresses.delete(oldest[0]);
    this.#names.delete(oldest[1]);
    return oldest[1];
  }
}

/**
 * Owns which address stands for which name inside this guest. The guest's programs get an address of this range for a name, so
 * that a connection says which name was meant; what the name's real addresses are only the host knows.
 */

/** 198.18.0.0/15, set aside for tests between networks: never an address of the internet. */
const FIRST = 198 * 2 ** 24 + 18 * 2 ** 16;
/** Names that are remembered; the one that was asked for least lately goes first. */
const MOST_NAMES = 65_536;

export class Names {
  readonly #addresses = new Map<string, number>();
  readonly #names = new Map<number, string>();
  #next = 1;

  /** The address that stands for the name, as a number. */
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

  /** Null for an address that stands for no name. */
  nameOf(address: Uint8Array): string | null {
    if (address.byteLength !== 4) return null;
    return this.#names.get(new DataView(address.buffer, address.byteOffset).getUint32(0)) ?? null;
  }

  #free(): number {
    if (this.#next <= MOST_NAMES) return FIRST + this.#next++;
    const [oldest = ["", 0]] = this.#addresses;
    this.#addresses.delete(oldest[0]);
    this.#names.delete(oldest[1]);
    return oldest[1];
  }
}

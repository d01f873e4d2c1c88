/** Random choices in tests: every choice follows from one seed, which is printed, so that a run can be reproduced. */

export class Chance {
  readonly seed: number;
  #state: number;

  /** The seed is ROOMD_TEST_SEED, or a new one. */
  constructor(seed = Number(process.env.ROOMD_TEST_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])) {
    if (!Number.isInteger(seed)) throw new Error(`ROOMD_TEST_SEED=${process.env.ROOMD_TEST_SEED} is no whole number`);
    this.seed = seed;
    this.#state = seed >>> 0;
  }

  /** At least 0 and below 1: a Weyl sequence through the finalizer of MurmurHash3. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `least` to `most`. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.whole(0, from.length - 1)];
    if (picked === undefined) throw new Error("there is nothing to pick from");
    return picked;
  }
}

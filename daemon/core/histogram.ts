/** Histogram with fixed bounds, from which quantiles are estimated. */
export class Histogram {
  /** Upper bounds, the smallest first. */
  readonly bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    // The last bucket counts values above all bounds.
    this.#counts = [...bounds, Number.POSITIVE_INFINITY].map(() => 0);
  }

  note(value: number): void {
    // Called for each piece of the event loop: avoids a closure.
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] ?? 0)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  get sum(): number {
    return this.#sum;
  }

  /** Cumulative counts of values up to each bound, and last the total count. */
  atMost(): number[] {
    let sum = 0;
    return this.#counts.map((count) => {
      sum += count;
      return sum;
    });
  }
}

/** Owns how long work goes on before it lets the event loop do something else. */
const SLICE_MS = 2;

export class Pace {
  #since = performance.now();

  get due(): boolean {
    return performance.now() - this.#since >= SLICE_MS;
  }

  async rest(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}

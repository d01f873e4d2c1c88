import { LoopTime, type Piece } from "../../../../daemon/core/loop/scheduler.ts";

/** An event loop in virtual time: immediates of a turn run in order, each followed by its microtasks. */
export class Simulation {
  now = 0;
  idleMs = 0;
  readonly pieces: Piece[] = [];
  readonly time: LoopTime;
  #immediates: (() => void)[] = [];
  #timers: { at: number; callback: () => void }[] = [];

  constructor() {
    this.time = new LoopTime({
      now: () => this.now,
      defer: (callback) => this.defer(callback),
      after: (ms, callback) => this.at(this.now + ms, callback),
      cpu: () => this.now,
    });
    this.time.observe((piece) => this.pieces.push(piece));
  }

  defer(callback: () => void): void {
    this.#immediates.push(callback);
  }

  at(at: number, callback: () => void): void {
    this.#timers.push({ at, callback });
    this.#timers.sort((a, b) => a.at - b.at);
  }

  compute(ms: number): void {
    this.now += ms;
  }

  async run(until: number): Promise<void> {
    while (this.now < until) {
      while (this.#timers[0] && this.#timers[0].at <= this.now) await this.#call(this.#timers.shift()?.callback);
      const turn = this.#immediates;
      this.#immediates = [];
      for (const callback of turn) await this.#call(callback);
      if (turn.length > 0 || this.#immediates.length > 0) continue;
      const next = this.#timers[0]?.at ?? until;
      if (next <= this.now) continue;
      this.idleMs += Math.min(next, until) - this.now;
      this.now = Math.min(next, until);
    }
  }

  async #call(callback: (() => void) | undefined): Promise<void> {
    callback?.();
    for (let microtask = 0; microtask < 6; microtask++) await null;
  }
}

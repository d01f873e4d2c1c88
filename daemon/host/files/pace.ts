/** Owns how long work goes on before it lets the event loop do something else. */
import { nextTurn } from "../../core/turn.ts";

const SLICE_MS = 0.5;

/** Resolves when the work may go on; rejects when it shall end instead. */
export type Turn = () => Promise<void>;

export class Pace {
  readonly #turn: Turn;
  #since = performance.now();

  constructor(turn: Turn = nextTurn) {
    this.#turn = turn;
  }

  get due(): boolean {
    return performance.now() - this.#since >= SLICE_MS;
  }

  async rest(): Promise<void> {
    await this.#turn();
    this.#since = performance.now();
  }
}

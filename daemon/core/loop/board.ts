/** The event loop's current piece, in memory shared with the watchdog thread. */

/** Indexes of 64-bit numbers; times are monotonic times of the loop's thread. */
const TIMES = { beat: 0, since: 1, length: 2 } as const;
/** Indexes of the 32-bit numbers that follow. */
const WORDS = { piece: 0, label: 1, owner: 2, length: 3 } as const;

export const BOARD_BYTES = TIMES.length * 8 + WORDS.length * 4;

/** `beat`: last beat of the loop's timer. `since`: start of the running piece, 0 if none runs. */
export interface BoardState {
  beat: number;
  since: number;
  piece: number;
  label: number;
  owner: number;
}

export class Board {
  readonly #times: Float64Array;
  readonly #words: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    this.#times = new Float64Array(memory, 0, TIMES.length);
    this.#words = new Int32Array(memory, TIMES.length * 8, WORDS.length);
  }

  /** A piece starts. */
  start(now: number, label: number, owner: number): void {
    this.#words[WORDS.label] = label;
    this.#words[WORDS.owner] = owner;
    this.#words[WORDS.piece] = ((this.#words[WORDS.piece] ?? 0) + 1) | 0;
    this.#times[TIMES.since] = now;
  }

  end(): void {
    this.#times[TIMES.since] = 0;
  }

  beat(now: number): void {
    this.#times[TIMES.beat] = now;
  }

  read(): BoardState {
    const [times, words] = [this.#times, this.#words];
    return {
      beat: times[TIMES.beat] ?? 0,
      since: times[TIMES.since] ?? 0,
      piece: words[WORDS.piece] ?? 0,
      label: words[WORDS.label] ?? 0,
      owner: words[WORDS.owner] ?? 0,
    };
  }
}

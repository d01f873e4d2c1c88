/** Splits long work into pieces: after 2 ms of event loop time, other work runs. */
import type { OwnerName } from "./owner.ts";
import type { LoopTime } from "./scheduler.ts";

const PIECE_MS = 2;

interface Options {
  /** Key, sandbox or connection; those of one owner take turns. */
  within?: string;
  /** Cancels the work: the next piece does not start, and its promise rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Long work of one owner. Create it where the work starts. */
export class Pieces {
  readonly #time: LoopTime;
  readonly #owner: OwnerName;
  readonly #label: string;
  readonly #within: string;
  readonly #signal: AbortSignal | undefined;

  constructor(time: LoopTime, owner: OwnerName, label: string, { within = "", signal }: Options = {}) {
    this.#time = time;
    this.#owner = owner;
    this.#label = label;
    this.#within = within;
    this.#signal = signal;
  }

  /**
   * Null if the work may continue, otherwise a promise to await first. Cheap enough to call for each row. All works of an owner share the
   * time of a piece; outside of a piece, for example after an await, the work enters the loop as a callback does.
   */
  next(): Promise<void> | null {
    const ranMs = this.#time.ranFor(this.#owner);
    if (ranMs !== null && ranMs < PIECE_MS) return null;
    if (ranMs !== null) return this.turn();
    const turn = this.#time.enter(this.#owner, this.#label, this.#within);
    if (turn) return turn.then(this.#start);
    this.#start();
    return null;
  }

  /** Always waits for a new piece: before a step that takes milliseconds, or that may be one of many that start together. */
  turn(): Promise<void> {
    return this.#time.next(this.#owner, this.#label, this.#within).then(this.#start);
  }

  readonly #start = (): void => this.#signal?.throwIfAborted();
}

/** The part of Pieces that iterations use. */
export type PieceTurns = Pick<Pieces, "next" | "turn">;

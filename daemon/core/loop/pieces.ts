/** Long work in pieces: after 2 ms of the event loop it lets others have theirs. */
import type { OwnerName } from "./owner.ts";
import type { LoopTime } from "./time.ts";

const PIECE_MS = 2;

/** Work that one owner continues for long. Create it where the work starts. */
export class Pieces {
  readonly #time: LoopTime;
  readonly #owner: OwnerName;
  readonly #label: string;
  readonly #within: string;
  #since = performance.now();

  constructor(time: LoopTime, owner: OwnerName, label: string, within = "") {
    this.#time = time;
    this.#owner = owner;
    this.#label = label;
    this.#within = within;
  }

  /** Null while the piece has time left, otherwise a promise to await before the work continues. Cheap enough for each row. */
  next(): Promise<void> | null {
    if (performance.now() - this.#since < PIECE_MS) return null;
    return this.#time.next(this.#owner, this.#label, this.#within).then(() => {
      this.#since = performance.now();
    });
  }
}

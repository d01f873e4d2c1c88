/** Current typist of each terminal, among clients of this daemon, for its watchers. */
import { at, wallMs } from "../../core/clock.ts";

export interface Writer {
  name: string;
  since: string;
}

/** The key of a terminal: its sandbox and its id. */
export function placeOf(sandboxId: string, terminalId: string): string {
  return `${sandboxId} ${terminalId}`;
}

export class Writers {
  /** The last entry is the typist: its predecessor is being disconnected. */
  readonly #all = new Map<string, Set<Writer>>();
  readonly #listeners = new Map<string, () => void>();

  /** Adds an attached client; the returned function removes it, and is idempotent. */
  enter(place: string, name: string): () => void {
    const typist = { name, since: at(wallMs()) };
    const own = this.#all.get(place) ?? new Set();
    this.#all.set(place, own.add(typist));
    this.#listeners.get(place)?.();
    return () => {
      if (!own.delete(typist)) return;
      if (own.size === 0 && this.#all.get(place) === own) this.#all.delete(place);
      this.#listeners.get(place)?.();
    };
  }

  of(place: string): Writer | null {
    return [...(this.#all.get(place) ?? [])].at(-1) ?? null;
  }

  /** `listener` is called when a typist attaches or detaches, until the returned function is called. */
  hear(place: string, listener: () => void): () => void {
    this.#listeners.set(place, listener);
    return () => {
      if (this.#listeners.get(place) === listener) this.#listeners.delete(place);
    };
  }
}

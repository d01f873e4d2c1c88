/** Owns who types at which terminal, as far as they came by this daemon, so that its watchers can be told. */
import { at, wallMs } from "../../core/clock.ts";

export interface Typist {
  name: string;
  since: string;
}

/** A terminal by its names, as one. */
export function placeOf(sandboxId: string, terminalId: string): string {
  return `${sandboxId} ${terminalId}`;
}

export class Typists {
  /** Who came last types: the one before is being sent away. */
  readonly #all = new Map<string, Set<Typist>>();
  readonly #listeners = new Map<string, () => void>();

  /** Somebody is attached; what is returned says that they have left, once. */
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

  of(place: string): Typist | null {
    return [...(this.#all.get(place) ?? [])].at(-1) ?? null;
  }

  /** `listener` is called when somebody comes or goes, until what is returned is called. */
  hear(place: string, listener: () => void): () => void {
    this.#listeners.set(place, listener);
    return () => {
      if (this.#listeners.get(place) === listener) this.#listeners.delete(place);
    };
  }
}

/**
 * Owns what ends with a key: calls under way, streams, terminals and SSH sessions hold on to the key or token by which they were
 * opened, and are cut as soon as it is no longer good, whatever door they came in by.
 */
import { startInterval, stopTimer } from "./clock.ts";

/** What another process has revoked, and what has expired, is noticed after this time. */
const LOOK_MS = 500;

interface Held {
  isCurrent(): boolean;
  grips: Grip[];
}

export class Holds {
  readonly #all = new Map<string, Held>();
  #timer: Timer | undefined;

  /** `cut` is called, once, when what `id` names is no longer good; what is returned lets go. */
  hold(id: string, isCurrent: () => boolean, cut: () => void): () => void {
    const held = this.#all.get(id) ?? this.#begin(id, isCurrent);
    const grip = new Grip(held.grips, cut);
    return () => grip.letGo();
  }

  #begin(id: string, isCurrent: () => boolean): Held {
    const held = { isCurrent, grips: [] };
    this.#all.set(id, held);
    this.#timer ??= startInterval(() => this.#tick(), LOOK_MS).unref();
    return held;
  }

  /** Cuts what is held by keys that are no longer good: each is asked for once, however much holds on to it. */
  look(): void {
    for (const [id, { isCurrent, grips }] of [...this.#all]) {
      if (grips.length > 0 && isCurrent()) continue;
      this.#all.delete(id);
      for (const grip of [...grips]) grip.end();
    }
  }

  /** Nobody looks while nothing is held. */
  #tick(): void {
    this.look();
    if (this.#all.size > 0) return;
    stopTimer(this.#timer);
    this.#timer = undefined;
  }
}

/** One that holds on. Nearly every call does for a moment: it knows its place in the list, and leaves it without a search. */
class Grip {
  readonly #all: Grip[];
  readonly #cut: () => void;
  /** Its place; none when it has let go. */
  #at: number | null;

  constructor(all: Grip[], cut: () => void) {
    this.#all = all;
    this.#cut = cut;
    this.#at = all.push(this) - 1;
  }

  /** Again is nothing. */
  letGo(): void {
    if (this.#at === null) return;
    const last = this.#all.pop();
    // The last takes its place.
    if (last !== undefined && last !== this) {
      this.#all[this.#at] = last;
      last.#at = this.#at;
    }
    this.#at = null;
  }

  /** Cut, unless it has let go. */
  end(): void {
    if (this.#at === null) return;
    this.letGo();
    this.#cut();
  }
}

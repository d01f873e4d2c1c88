/**
 * Owns what ends with a key: calls under way, streams, terminals and SSH sessions hold on to the key or token by which they were
 * opened, and are cut as soon as it is no longer good, whatever door they came in by.
 */

/** What another process has revoked, and what has expired, is noticed after this time. */
const LOOK_MS = 500;

interface Held {
  isCurrent(): boolean;
  cuts: Set<() => void>;
}

export class Holds {
  readonly #all = new Map<string, Held>();
  #timer: Timer | undefined;

  /** `cut` is called, once, when what `id` names is no longer good; what is returned lets go. */
  hold(id: string, isCurrent: () => boolean, cut: () => void): () => void {
    const held = this.#all.get(id) ?? this.#begin(id, isCurrent);
    held.cuts.add(cut);
    this.#timer ??= setInterval(() => this.#tick(), LOOK_MS).unref();
    return () => {
      held.cuts.delete(cut);
      if (held.cuts.size === 0 && this.#all.get(id) === held) this.#all.delete(id);
    };
  }

  #begin(id: string, isCurrent: () => boolean): Held {
    const held = { isCurrent, cuts: new Set<() => void>() };
    this.#all.set(id, held);
    return held;
  }

  /** Cuts what is held by keys that are no longer good: each is asked for once, however much holds on to it. */
  look(): void {
    for (const [id, { isCurrent, cuts }] of [...this.#all]) {
      if (isCurrent()) continue;
      this.#all.delete(id);
      for (const cut of cuts) cut();
    }
  }

  /** Nobody looks while nothing is held. */
  #tick(): void {
    this.look();
    if (this.#all.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

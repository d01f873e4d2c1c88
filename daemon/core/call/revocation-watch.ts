/**
 * Effects of revocation: calls in progress, streams, terminals and SSH sessions hold the key or token with which they were opened, and are
 * closed as soon as it is revoked or expires, whatever their transport.
 */
import { startInterval, stopTimer } from "../clock.ts";

/** Poll interval for revocations by other processes, and for expiry. */
const LOOK_MS = 500;

interface Credential {
  isCurrent(): boolean;
  grips: Grip[];
}

export class RevocationWatch {
  readonly #all = new Map<string, Credential>();
  #timer: Timer | undefined;

  /** `cut` is called once, when the credential `id` is no longer valid; the returned function releases the hold. */
  hold(id: string, isCurrent: () => boolean, cut: () => void): () => void {
    const held = this.#all.get(id) ?? this.#begin(id, isCurrent);
    const grip = new Grip(held.grips, cut);
    return () => grip.letGo();
  }

  #begin(id: string, isCurrent: () => boolean): Credential {
    const held = { isCurrent, grips: [] };
    this.#all.set(id, held);
    this.#timer ??= startInterval(() => this.#tick(), LOOK_MS).unref();
    return held;
  }

  /** Closes the holders of invalid keys: each key is checked once, however many holders it has. */
  look(): void {
    for (const [id, { isCurrent, grips }] of [...this.#all]) {
      if (grips.length > 0 && isCurrent()) continue;
      this.#all.delete(id);
      for (const grip of [...grips]) grip.end();
    }
  }

  /** The timer stops while nothing is held. */
  #tick(): void {
    this.look();
    if (this.#all.size > 0) return;
    stopTimer(this.#timer);
    this.#timer = undefined;
  }
}

/** One hold. Nearly every call has one for a moment: it stores its index in the list, and is removed without a search. */
class Grip {
  readonly #all: Grip[];
  readonly #cut: () => void;
  /** Index in `#all`; null after release. */
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

  /** Calls `cut`, unless this entry was released. */
  end(): void {
    if (this.#at === null) return;
    this.letGo();
    this.#cut();
  }
}

/** Round-robin queue of owners, however many items one of them has; each owner's items are in order of arrival. */
export class FairQueue<T> {
  /** By owner; the next in turn comes first. */
  readonly #waiting = new Map<string, Set<T>>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  add(owner: string, item: T): void {
    const own = this.#waiting.get(owner);
    if (own) own.add(item);
    else this.#waiting.set(owner, new Set([item]));
  }

  remove(owner: string, item: T): void {
    const own = this.#waiting.get(owner);
    own?.delete(item);
    if (own?.size === 0) this.#waiting.delete(owner);
  }

  /** Takes out the next. */
  take(): T | undefined {
    for (const [owner, own] of this.#waiting) {
      for (const item of own) {
        own.delete(item);
        // The only owner stays in place.
        if (own.size > 0 && this.#waiting.size === 1) return item;
        this.#waiting.delete(owner);
        // The owner moves to the end of the order if it has more items.
        if (own.size > 0) this.#waiting.set(owner, own);
        return item;
      }
    }
    return undefined;
  }
}

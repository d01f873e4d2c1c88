/** Owns a queue in which owners take turns, whatever one of them has waiting; each has its own in the order in which they came. */
export class FairQueue<T> {
  /** By owner; the one whose turn is next comes first. */
  readonly #waiting = new Map<string, Set<T>>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  add(owner: string, item: T): void {
    const own = this.#waiting.get(owner) ?? new Set();
    this.#waiting.set(owner, own.add(item));
  }

  remove(owner: string, item: T): void {
    const own = this.#waiting.get(owner);
    own?.delete(item);
    if (own?.size === 0) this.#waiting.delete(owner);
  }

  /** Takes out the next. */
  take(): T | undefined {
    const [next] = this.#waiting;
    if (!next) return undefined;
    const [owner, own] = next;
    const [item] = own;
    this.#waiting.delete(owner);
    own.delete(item as T);
    // The last in the row, should it have more.
    if (own.size > 0) this.#waiting.set(owner, own);
    return item;
  }
}

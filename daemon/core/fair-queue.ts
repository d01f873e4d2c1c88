/** Owns a queue in which owners take turns, whatever one of them has waiting; each has its own in the order in which they came. */
export class FairQueue<T> {
  /** By owner; the one whose turn is next comes first. */
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
    const [next] = this.#waiting;
    if (!next) return undefined;
    const [owner, own] = next;
    const [item] = own;
    own.delete(item as T);
    // Alone it stays where it is.
    if (own.size > 0 && this.#waiting.size === 1) return item;
    this.#waiting.delete(owner);
    // The last in the row, should it have more.
    if (own.size > 0) this.#waiting.set(owner, own);
    return item;
  }
}

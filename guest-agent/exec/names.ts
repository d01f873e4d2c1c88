/** Names of executions that are no longer retained, so that none is run again or treated as never existing. */
export class Names {
  readonly #most: number;
  readonly #all = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  add(name: string): void {
    this.#all.add(name);
    const [oldest] = this.#all;
    if (oldest !== undefined && this.#all.size > this.#most) this.#all.delete(oldest);
  }

  has(name: string): boolean {
    return this.#all.has(name);
  }

  clear(): void {
    this.#all.clear();
  }
}

/** Owns which templates sandboxes were made of lately: machines of these are worth launching ahead. */
const RECENT_MS = 3_600_000;
/** Each has a machine that waits, with all the memory that its template was saved with. */
const MOST_TEMPLATES = 4;

export class RecentUse {
  /** When each was used last, the latest at the end. */
  readonly #usedMs = new Map<string, number>();
  readonly #clock: () => number;

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  note(templateId: string): void {
    this.#usedMs.delete(templateId);
    this.#usedMs.set(templateId, this.#clock());
  }

  /** The latest first. */
  list(): string[] {
    const since = this.#clock() - RECENT_MS;
    for (const [templateId, usedMs] of this.#usedMs) if (usedMs < since) this.#usedMs.delete(templateId);
    return [...this.#usedMs.keys()].reverse().slice(0, MOST_TEMPLATES);
  }
}

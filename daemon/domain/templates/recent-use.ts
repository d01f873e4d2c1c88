/** Owns what sandboxes were made of lately, templates and numbers of processors: machines of these are worth launching ahead. */
const RECENT_MS = 3_600_000;
/** Each has a machine that waits, with all the memory that its template was saved with. */
const MOST = 4;

export interface Use {
  template_id: string;
  vcpu_count: number;
}

export class RecentUse {
  /** When each was last, the latest at the end. */
  readonly #used = new Map<string, Use & { atMs: number }>();
  readonly #clock: () => number;

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  note({ template_id, vcpu_count }: Use): void {
    const key = `${template_id} ${vcpu_count}`;
    this.#used.delete(key);
    this.#used.set(key, { template_id, vcpu_count, atMs: this.#clock() });
  }

  /** The latest first. */
  list(): Use[] {
    const since = this.#clock() - RECENT_MS;
    for (const [key, { atMs }] of this.#used) if (atMs < since) this.#used.delete(key);
    const latest = [...this.#used.values()].reverse().slice(0, MOST);
    return latest.map(({ template_id, vcpu_count }) => ({ template_id, vcpu_count }));
  }
}

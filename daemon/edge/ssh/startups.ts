/**
 * Limits on connections that have not logged in: in total and per address, and the choice of the one to drop above a limit. A new
 * connection is always accepted; of the address with most, the least advanced connection is dropped, the oldest first. So a thousand idle
 * connections cannot block a login.
 */
export interface StartupLimits {
  all: number;
  per_address: number;
}

interface Startup {
  address: string;
  /** Whether keys were exchanged, which costs more than a slot. */
  greeted: boolean;
  drop(): void;
}

export class Startups {
  readonly #limits: StartupLimits;
  /** In order of arrival. */
  readonly #all = new Set<Startup>();

  constructor(limits: StartupLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Registers a connection; `drop` ends it when its slot is needed. */
  enter(address: string, drop: () => void): { greet(): void; leave(): void } {
    const own: Startup = { address, greeted: false, drop };
    // Before it counts itself: the new connection is never the one dropped.
    if (this.#of(address).length >= this.#limits.per_address) this.#dropOne(address);
    else if (this.#all.size >= this.#limits.all) this.#dropOne(this.#busiest());
    this.#all.add(own);
    return {
      greet: () => {
        own.greeted = true;
      },
      leave: () => this.#all.delete(own),
    };
  }

  #dropOne(address: string): void {
    const candidates = this.#of(address);
    const [first] = candidates.filter(({ greeted }) => !greeted).concat(candidates);
    if (!first) return;
    this.#all.delete(first);
    first.drop();
  }

  #of(address: string): Startup[] {
    return [...this.#all].filter((each) => each.address === address);
  }

  #busiest(): string {
    const counts = new Map<string, number>();
    for (const { address } of this.#all) counts.set(address, (counts.get(address) ?? 0) + 1);
    const [most] = [...counts].sort(([, a], [, b]) => b - a);
    return most?.[0] ?? "";
  }
}

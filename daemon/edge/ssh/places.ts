/** Owns the connections that have logged in: how many there may be, in all and of one organization. */
import type { OrgId } from "../../../shared/ids.ts";

export class Places {
  readonly #most: { all: number; per_org: number };
  readonly #taken = new Map<OrgId, number>();
  #all = 0;

  constructor(most: { all: number; per_org: number }) {
    this.#most = most;
  }

  /** Takes a place, and returns how to leave it; null when there is none. */
  enter(org: OrgId): (() => void) | null {
    const taken = this.#taken.get(org) ?? 0;
    if (this.#all >= this.#most.all || taken >= this.#most.per_org) return null;
    this.#all++;
    this.#taken.set(org, taken + 1);
    return () => this.#leave(org);
  }

  #leave(org: OrgId): void {
    this.#all--;
    const left = (this.#taken.get(org) ?? 0) - 1;
    if (left > 0) this.#taken.set(org, left);
    else this.#taken.delete(org);
  }
}

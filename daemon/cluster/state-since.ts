/** Start of each host's current state, as observed from here. A state that existed when this host started to observe has no start. */
import { now } from "../core/clock.ts";
import type { Host, HostState } from "./directory.ts";

export class StateSince {
  readonly #seen = new Map<string, { state: HostState; since: string | null }>();
  #isFirst = true;

  /** Call it periodically, with all hosts, and only if their state is known. */
  note(hosts: readonly Pick<Host, "host_id" | "state">[]): void {
    const at = this.#isFirst ? null : now();
    this.#isFirst = false;
    for (const { host_id, state } of hosts) {
      if (this.#seen.get(host_id)?.state !== state) this.#seen.set(host_id, { state, since: at });
    }
  }

  /** Null: since before this host observed it, or never observed in this state. */
  of({ host_id, state }: Pick<Host, "host_id" | "state">): string | null {
    const seen = this.#seen.get(host_id);
    return seen?.state === state ? seen.since : null;
  }
}

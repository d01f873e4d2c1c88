/** Owns since when each host is in its state, as it was seen from here. What was so when this host began to look has no beginning. */
import { now } from "../core/clock.ts";
import type { Host, HostState } from "./directory.ts";

export class Since {
  readonly #seen = new Map<string, { state: HostState; since: string | null }>();
  #isFirst = true;

  /** To be called again and again, with all hosts; what is not known is not to be told. */
  note(hosts: readonly Pick<Host, "host_id" | "state">[]): void {
    const at = this.#isFirst ? null : now();
    this.#isFirst = false;
    for (const { host_id, state } of hosts) {
      if (this.#seen.get(host_id)?.state !== state) this.#seen.set(host_id, { state, since: at });
    }
  }

  /** Null: since before this host looked, or it was not seen in this state yet. */
  of({ host_id, state }: Pick<Host, "host_id" | "state">): string | null {
    const seen = this.#seen.get(host_id);
    return seen?.state === state ? seen.since : null;
  }
}

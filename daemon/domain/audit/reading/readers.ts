/** Slots for clients that follow events: limited per organization and in total, and shared equally when full. */
import type { OrgId } from "../../../../shared/ids.ts";
import type { Caller } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";

const MAX_READERS = 1000;
/** Limit per organization, so that none takes all slots while others need them. */
const MAX_OF_ORG = 250;

/** Log messages. */
export const SLOW_READER = {
  events: "disconnected a slow reader of events",
  export: "disconnected a slow reader of an audit export",
};

interface Reader {
  /** Ends the stream: its client reconnects, and is refused as long as no slot is free. */
  cut(): void;
}

export class Readers {
  readonly #mostReaders: number;
  readonly #mostOfOrg: number;
  /** Readers by organization, in order of arrival. */
  readonly #ofOrgs = new Map<OrgId, Set<Reader>>();
  #count = 0;

  constructor(mostReaders = MAX_READERS, mostOfOrg = MAX_OF_ORG) {
    this.#mostReaders = mostReaders;
    this.#mostOfOrg = mostOfOrg;
  }

  /**
   * Takes a slot until the signal aborts. If all are taken, calls `cut` of the newest reader of the organization with the most readers,
   * which aborts that reader's signal; unless the caller's organization would then have as many. Throws rate_limited.
   */
  add({ org_id }: Pick<Caller, "org_id">, signal: AbortSignal, cut: () => void): void {
    const own = this.#ofOrgs.get(org_id) ?? new Set();
    if (own.size >= this.#mostOfOrg) throw this.#refusal();
    if (this.#count >= this.#mostReaders && !this.#makeRoom(own.size)) throw this.#refusal();
    const reader = { cut };
    this.#ofOrgs.set(org_id, own.add(reader));
    this.#count++;
    const leave = () => {
      if (!own.delete(reader)) return;
      this.#count--;
      if (own.size === 0 && this.#ofOrgs.get(org_id) === own) this.#ofOrgs.delete(org_id);
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  }

  #makeRoom(ownCount: number): boolean {
    let biggest: Set<Reader> = new Set();
    for (const readers of this.#ofOrgs.values()) if (readers.size > biggest.size) biggest = readers;
    if (biggest.size <= ownCount + 1) return false;
    [...biggest].at(-1)?.cut();
    return this.#count < this.#mostReaders;
  }

  #refusal(): ServiceError {
    return new ServiceError("rate_limited", {
      detail: `At most ${this.#mostOfOrg} clients of an organization can follow events, and ${this.#mostReaders} in all.`,
      retryAfterSeconds: 5,
    });
  }
}

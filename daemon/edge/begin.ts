/**
 * Start of requests in the event loop: a request queues as one of its network, and is charged to its organization as soon as the caller is
 * known. Requests beyond a rate are delayed, so that a client which retries immediately cannot fill the
 * loop with refusals.
 */

import { sleep } from "../core/clock.ts";
import { type LoopTime, loopTime, ownerOf } from "../core/loop/index.ts";
import type { Caller } from "../core/operation.ts";
import { networkOf } from "../domain/egress/addresses.ts";

const REFUSED_MS = 100;

export class Begin {
  readonly #time: LoopTime;
  readonly #refusedMs: number;

  constructor(time = loopTime, refusedMs = REFUSED_MS) {
    this.#time = time;
    this.#refusedMs = refusedMs;
  }

  /** Before a request is read: null if it may start immediately. `connection` distinguishes the connections of a network. */
  request(ip: string | null, connection: string): Promise<void> | null {
    return this.#time.enter(netOf(ip), "request", connection);
  }

  /** Before a call of an authenticated caller: null if it may start immediately. */
  call(caller: Caller, operation: string, isWithinRate: boolean): Promise<void> | null {
    const enter = () => this.#time.enter(ownerOf(caller.org_id), operation, withinOf(caller));
    return isWithinRate ? enter() : sleep(this.#refusedMs).then(() => enter() ?? undefined);
  }

  /** Charges the caller's organization from now on: after an await. */
  goesOn(caller: Caller, operation: string): void {
    this.#time.goesOn(ownerOf(caller.org_id), operation);
  }

  /** The same for an unauthenticated client. */
  unknownGoesOn(ip: string | null): void {
    this.#time.goesOn(netOf(ip), "request");
  }

  /** Before an unauthenticated client is refused. */
  async refused(): Promise<void> {
    await sleep(this.#refusedMs);
  }
}

const netOf = (ip: string | null) => `net:${ip?.includes(":") ? networkOf(ip) : (ip ?? "unknown")}` as const;

/** Keys, sessions and sandboxes of an organization take turns. */
const withinOf = ({ session, key_id }: Caller) => session?.session_id ?? key_id;

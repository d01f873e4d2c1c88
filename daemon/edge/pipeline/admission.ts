/**
 * Start of requests in the event loop: a request queues under its network, and is charged to its organization as soon as the caller is
 * authenticated. The next request of the same connection queues under that organization: it does not wait for all connections of its
 * network. Each request with a key updates this, so requests of other clients, which a proxy may send by the same connection, are hardly
 * charged to it. Requests above a rate are delayed, so that a client which retries immediately cannot fill the loop with refusals.
 */

import { LRUCache } from "lru-cache";
import type { Caller } from "../../core/call/operation.ts";
import { sleep } from "../../core/clock.ts";
import { type LoopTime, loopTime, type OwnerName, ownerOf } from "../../core/loop/index.ts";
import { networkOf } from "../../domain/egress/addresses.ts";

const REFUSED_MS = 100;
/** Label of loop time in which requests start. */
const REQUEST = "request";
/** Connections with a remembered caller; the least recent are evicted. */
const MAX_CONNECTIONS = 16_384;
/** IPv6 addresses with a remembered network; the least recent are evicted. */
const MAX_NETWORKS = 4_096;

/** Caller of the last request of a connection; null from its next request on, until the caller of that is known. */
interface LastCaller {
  owner: OwnerName | null;
  within: string;
}

export class Admission {
  readonly #time: LoopTime;
  readonly #refusedMs: number;
  readonly #callers = new LRUCache<string, LastCaller>({ max: MAX_CONNECTIONS });

  constructor(time = loopTime, refusedMs = REFUSED_MS) {
    this.#time = time;
    this.#refusedMs = refusedMs;
  }

  /** Admits a request before it is read: null if it may start immediately. `connection` distinguishes the connections of clients. */
  request(ip: string | null, connection: string): Promise<void> | null {
    const caller = this.#callers.get(connection);
    const owner = caller?.owner;
    if (!caller || !owner) return this.#time.enter(netOf(ip), REQUEST, connection);
    caller.owner = null;
    const turn = this.#time.arrive(owner, REQUEST, caller.within);
    if (turn) this.unknownGoesOn(ip);
    return turn;
  }

  /**
   * Admits a call of an authenticated caller: null if it may start immediately. `connection` as in `request`; null: the call is another
   * host's.
   */
  call(
    caller: Caller,
    operation: string,
    isWithinRate: boolean,
    connection: string | null = null,
  ): Promise<void> | null {
    const owner = ownerOf(caller.org_id);
    const within = withinOf(caller);
    if (connection !== null) this.#remember(connection, owner, within);
    const enter = () => this.#time.enter(owner, operation, within);
    if (!isWithinRate) return sleep(this.#refusedMs).then(() => enter() ?? undefined);
    // The call has already queued as a request of this organization.
    return this.#time.relabel(owner, REQUEST, operation) ? null : enter();
  }

  #remember(connection: string, owner: OwnerName, within: string): void {
    const caller = this.#callers.get(connection);
    if (!caller) this.#callers.set(connection, { owner, within });
    else {
      caller.owner = owner;
      caller.within = within;
    }
  }

  /** Charges the caller's organization from now on: after an await. */
  goesOn(caller: Caller, operation: string): void {
    this.#time.goesOn(ownerOf(caller.org_id), operation);
  }

  /** Charges the network of an unauthenticated client from now on. */
  unknownGoesOn(ip: string | null): void {
    this.#time.goesOn(netOf(ip), REQUEST);
  }

  /** Delays the refusal of an unauthenticated client. */
  async refused(): Promise<void> {
    await sleep(this.#refusedMs);
  }
}

const netOf = (ip: string | null) => `net:${ip?.includes(":") ? networkOfIPv6(ip) : (ip ?? "unknown")}` as const;

/** Parsing such an address takes microseconds. */
const networks = new LRUCache<string, string>({ max: MAX_NETWORKS });
function networkOfIPv6(ip: string): string {
  const known = networks.get(ip);
  if (known !== undefined) return known;
  const network = networkOf(ip);
  networks.set(ip, network);
  return network;
}

/** Keys, sessions and sandboxes of an organization are served in turn. */
const withinOf = ({ session, key_id }: Caller) => session?.session_id ?? key_id;

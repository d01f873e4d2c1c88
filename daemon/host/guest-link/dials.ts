/**
 * Connections of a guest that have not proven yet to be its agent's, in two groups with bounds of their own:
 *
 *   anyones  every process of the guest can have made them, and the agent proves itself by its hello
 *   agents   the agent's by source port or proof; with an agent before AGENT_PROOF_GENERATION, which proves neither, all of them
 *
 * Unprivileged processes cannot displace a connection of the second group, and none touches the one over which the agent is linked.
 */

import { monotonicMs } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { GuestLink } from "./handshake.ts";
import { Allowance } from "./pace.ts";

/**
 * An agent needs one connection, says hello immediately, and dials five times a second at most if it is refused. It is one of `anyones` for
 * the few ms until its hello: these bounds only limit the work that a flood causes, and leave it a place in each burst.
 */
const BOUNDS = {
  anyones: { atATime: 32, perSecond: 100, atOnce: 32 },
  agents: { atATime: 4, perSecond: 10, atOnce: 20 },
} as const;
const TELL_EVERY_MS = 10_000;
/** Log message. */
export const CONNECTION_REFUSED = "guest connection refused";

export type DialGroup = keyof typeof BOUNDS;

export class Dials {
  readonly #log: Log;
  readonly #groups = { anyones: new Group(BOUNDS.anyones), agents: new Group(BOUNDS.agents) };
  #refused = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(log: Log) {
    this.#log = log;
  }

  /** False if the guest dials too often; the connection is then closed. */
  admit(link: GuestLink, name: DialGroup): boolean {
    const group = this.#groups[name];
    if (!group.allowance.take()) {
      this.refuse(link, "the guest dials too often");
      return false;
    }
    group.waiting.add(link);
    const [oldest] = group.waiting;
    if (group.waiting.size > group.atATime && oldest) {
      this.refuse(oldest, "the guest has too many unidentified connections");
    }
    return true;
  }

  /** Moves a connection of `anyones` that has proven to be the agent's to `agents`. False as `admit`. */
  promote(link: GuestLink): boolean {
    return !this.#groups.anyones.waiting.delete(link) || this.admit(link, "agents");
  }

  /** Whether a connection of `agents` is open. */
  get areWaiting(): boolean {
    for (const link of this.#groups.agents.waiting) if (!link.isClosed) return true;
    return false;
  }

  /** The connection has identified itself, or has ended. */
  settle(link: GuestLink): void {
    for (const { waiting } of this.#all) waiting.delete(link);
  }

  /** Closes a connection with the reason, which is logged at intervals only: a guest must not fill the log. */
  refuse(link: GuestLink, reason: string): void {
    this.settle(link);
    link.close(reason);
    this.#refused++;
    const now = monotonicMs();
    if (now - this.#toldAt < TELL_EVERY_MS) return;
    this.#log.warn(CONNECTION_REFUSED, { error: reason, times: this.#refused });
    this.#toldAt = now;
    this.#refused = 0;
  }

  closeAll(reason: string): void {
    for (const { waiting } of this.#all) {
      for (const link of [...waiting]) link.close(reason);
      waiting.clear();
    }
  }

  get #all(): Group[] {
    return Object.values(this.#groups);
  }
}

class Group {
  readonly atATime: number;
  readonly allowance: Allowance;
  readonly waiting = new Set<GuestLink>();

  constructor({ atATime, perSecond, atOnce }: { atATime: number; perSecond: number; atOnce: number }) {
    this.atATime = atATime;
    this.allowance = new Allowance(perSecond, atOnce);
  }
}

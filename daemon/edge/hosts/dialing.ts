/**
 * Connection setup to one host. A started connect cannot be cancelled, and the kernel retries it for minutes, holding a descriptor: so if a
 * host is silent, or has many connects in progress, one probe determines for all other callers whether it is up.
 */

import { monotonicMs } from "../../core/clock.ts";
import type { Certificate } from "../../core/config/certificate.ts";
import { type Connection, connectToHost, type Goal, NotConnected } from "./connection.ts";

/** Concurrent connects before a probe is needed. */
const MAX_AT_ONCE = 64;

export interface Dialled {
  goal: Goal;
  own: Certificate;
  withinMs: number;
  /** Receives the probe's connection, which no caller has requested. */
  spare(connection: Connection): void;
}

export class Dialing {
  readonly #dialled: Dialled;
  #underWay = 0;
  #isSilent = false;
  #knock: Promise<void> | null = null;

  constructor(dialled: Dialled) {
    this.#dialled = dialled;
  }

  /** Opens a connection for this caller alone. Rejects with NotConnected. */
  async dial(): Promise<Connection> {
    if (this.#isSilent || this.#underWay >= MAX_AT_ONCE) {
      this.#knock ??= this.#try()
        .then(this.#dialled.spare)
        .finally(() => {
          this.#knock = null;
        });
      await this.#knock;
    }
    return await this.#try();
  }

  async #try(): Promise<Connection> {
    this.#underWay++;
    try {
      const connection = await this.#connect();
      this.#isSilent = false;
      return connection;
    } catch (error) {
      this.#isSilent = error instanceof NotConnected && error.why === "silent";
      throw error;
    } finally {
      this.#underWay--;
    }
  }

  /** Reconnects once if the connection broke: no request is sent twice by that. */
  async #connect(): Promise<Connection> {
    const { goal, own, withinMs } = this.#dialled;
    const startedAt = monotonicMs();
    try {
      return await connectToHost(goal, own, withinMs);
    } catch (error) {
      const leftMs = withinMs - (monotonicMs() - startedAt);
      if (!(error instanceof NotConnected && error.why === "broken") || leftMs <= 0) throw error;
      return await connectToHost(goal, own, leftMs);
    }
  }
}

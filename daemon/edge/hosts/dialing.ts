/**
 * Owns beginning connections to one host. What was begun cannot be taken back, and the system tries it for minutes, with a descriptor
 * each: so of a host that says nothing, or is being dialled by many, one more finds out for all others whether it is there.
 */
import type { Certificate } from "../../core/certificate.ts";
import { monotonicMs } from "../../core/clock.ts";
import { type Connection, connectToHost, type Goal, NotConnected } from "./connection.ts";

/** At once, before one has to find out for the others. */
const MOST_AT_ONCE = 64;

export interface Dialled {
  goal: Goal;
  own: Certificate;
  withinMs: number;
  /** Takes a connection that nobody has asked for by itself. */
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

  /** A connection of one's own. Rejects with NotConnected. */
  async dial(): Promise<Connection> {
    if (this.#isSilent || this.#underWay >= MOST_AT_ONCE) {
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

  /** Once more where it broke: that is no second time for anything that is asked. */
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

/**
 * Owns putting aside sandboxes whose being taken over crashes the service. A note in the database is there from before a guest is
 * touched until the service has lived on for a while; what is noted when the service crashes is under suspicion.
 *
 *   free ──crash──▶ suspected: taken over alone, one after another ──crash──▶ aside: not touched any more
 *     ▲                 │
 *     └─────────────────┘ the service lives on
 *
 * Only a crash counts (host/last-end.ts), and not that somebody has killed the service. A suspected guest that is silent has its turn
 * for a few seconds and is late then: the next begins, and a crash is put down to a late one only where it is nobody's turn.
 */

import { sleep, startTimer, stopTimer } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { unlessGivenUp } from "../../core/published.ts";
import { describeError } from "../../core/service-error.ts";
import type { Database } from "../../db/transact.ts";
import { Gate } from "./admission.ts";
import { countAdoptions, forgetAdoption, noteAdoption, noteLateAdoption } from "./store.ts";
import type { SandboxRow } from "./table.ts";

/** By the first crash all that were being taken over are suspected, by the second the one that was alone. */
const MOST_CRASHES = 2;
/**
 * What a guest does to whoever meets it, it does at once. After these times the service has lived on with one that was taken over,
 * `together` with others or `alone`; for `turn` others wait for one that is being taken over alone: an agent dials within 2 s.
 */
const TIMES_MS = { together: 5_000, alone: 1_000, turn: 5_000 };

type Adopted = Pick<SandboxRow, "sandbox_id" | "org_id">;

/** `status.reason` of a sandbox that is put aside. */
export const QUARANTINED = "quarantined";

export class QuarantineError extends Error {
  override name = "QuarantineError";
}

export class Adoptions {
  readonly #deps: { database: Database; log: Log };
  readonly #crashes: Promise<Map<string, number>>;
  readonly #timesMs: typeof TIMES_MS;
  readonly #over = new AbortController();
  /** Of those who are taken over alone; organizations take turns. */
  readonly #turns = new Gate(1);

  /** `crashed`: that is how the daemon before this one ended. */
  constructor(deps: { database: Database; log: Log }, crashed: boolean, timesMs = TIMES_MS) {
    this.#deps = deps;
    this.#timesMs = timesMs;
    this.#crashes = deps.database.commit((queries) => countAdoptions(queries, crashed));
    // Whoever takes over first hears of it.
    this.#crashes.catch(() => {});
  }

  /**
   * Takes a guest over by `work`. Throws QuarantineError, and does nothing, when that has crashed the service too often; rejects with
   * the signal's reason when it is given up before its turn.
   */
  async guard<T>(row: Adopted, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { sandbox_id, org_id } = row;
    const crashes = (await this.#crashes).get(sandbox_id) ?? 0;
    if (crashes >= MOST_CRASHES) {
      throw new QuarantineError(`taking it over crashed the service ${crashes} times`);
    }
    if (crashes === 0) return await this.#noted(sandbox_id, work, this.#timesMs.together, () => {});
    const begun = Promise.withResolvers<{ done: Promise<T> }>();
    const turn = async () => {
      this.#deps.log.warn("sandbox taken over alone, after a crash", { sandbox_id, crashes });
      const over = Promise.withResolvers<void>();
      begun.resolve({ done: this.#inTurn(sandbox_id, work, over.resolve) });
      await over.promise;
    };
    this.#turns.through(org_id, turn, signal).catch(begun.reject);
    return await (await begun.promise).done;
  }

  /** Notes are forgotten by the next daemon, unless this one crashes. */
  stop(): void {
    this.#over.abort();
  }

  /** `onOver` is called once the service lives on with it, or others have waited for long enough. */
  async #inTurn<T>(sandboxId: Adopted["sandbox_id"], work: () => Promise<T>, onOver: () => void): Promise<T> {
    const { turn, alone } = this.#timesMs;
    const timed = async () => {
      const late = startTimer(() => void this.#passOver(sandboxId).then(onOver), turn);
      return await work().finally(() => stopTimer(late));
    };
    return await this.#noted(sandboxId, timed, alone, onOver);
  }

  /** The next begins once the database has it: what that one does is not this one's. */
  async #passOver(sandbox_id: Adopted["sandbox_id"]): Promise<void> {
    const { log } = this.#deps;
    log.warn("sandbox not taken over in its turn, others go on", { sandbox_id });
    await this.#note(sandbox_id, noteLateAdoption);
    // A daemon that stops takes over nobody any more.
    if (this.#over.signal.aborted) await new Promise<never>(() => {});
  }

  async #noted<T>(
    sandboxId: Adopted["sandbox_id"],
    work: () => Promise<T>,
    healthyMs: number,
    onHealthy: () => void,
  ): Promise<T> {
    await this.#note(sandboxId, noteAdoption);
    try {
      return await work();
    } finally {
      void unlessGivenUp(this.#over.signal, sleep(healthyMs)).then(
        async () => {
          (await this.#crashes).delete(sandboxId);
          await this.#note(sandboxId, forgetAdoption);
          onHealthy();
        },
        () => {},
      );
    }
  }

  /** A full disk does not keep a guest from being taken over. */
  async #note(sandbox_id: Adopted["sandbox_id"], write: typeof noteAdoption): Promise<void> {
    const { database, log } = this.#deps;
    await database
      .commit((queries) => write(queries, sandbox_id))
      .catch((error: unknown) => log.warn("adoption not noted", { sandbox_id, error: describeError(error) }));
  }
}

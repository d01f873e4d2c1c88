/**
 * Quarantine of sandboxes whose adoption crashes the daemon. A note is in the database from before a guest is touched until the daemon has
 * survived for a while; guests that are noted when the daemon crashes are suspected.
 *
 *     free ──crash──▶ suspected: adopted alone, one after another ──crash──▶ quarantined: not touched any more
 *       ▲                 │
 *       └─────────────────┘ the daemon survives
 *
 * Only a crash counts (host/last-exit.ts), not a kill by a person or service manager. An unresponsive suspected guest has its turn for a few
 * seconds and is then late: the next one starts, and a crash is attributed to a late guest only if no guest has the turn.
 */

import { sleep, startTimer, stopTimer } from "../../../core/clock.ts";
import { unlessGivenUp } from "../../../core/concurrency/published.ts";
import type { Log } from "../../../core/log.ts";
import { describeError } from "../../../core/service-error.ts";
import type { Database } from "../../../db/transact.ts";
import { countAdoptions, forgetAdoption, noteAdoption, noteLateAdoption } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { Gate } from "./admission.ts";

/** At the first crash all guests under adoption are suspected, at the second only the guest adopted alone. */
const MAX_CRASHES = 2;
/**
 * A guest that crashes the daemon does so immediately. After these times the daemon has survived an adoption, `together` with others or
 * `alone`; for `turn` others wait for a guest that is being adopted alone: an agent dials within 2 s.
 */
const TIMES_MS = { together: 5_000, alone: 1_000, turn: 5_000 };

type Adopted = Pick<SandboxRow, "sandbox_id" | "org_id">;

/** `status.reason` of a quarantined sandbox. */
export const QUARANTINED = "quarantined";

export class QuarantineError extends Error {
  override name = "QuarantineError";
}

export class Quarantine {
  readonly #deps: { database: Database; log: Log };
  readonly #crashes: Promise<Map<string, number>>;
  readonly #timesMs: typeof TIMES_MS;
  readonly #over = new AbortController();
  /** For guests that are adopted alone; organizations take turns. */
  readonly #turns = new Gate(1);

  /** `crashed`: whether the previous daemon crashed. */
  constructor(deps: { database: Database; log: Log }, crashed: boolean, timesMs = TIMES_MS) {
    this.#deps = deps;
    this.#timesMs = timesMs;
    this.#crashes = deps.database.commit((queries) => countAdoptions(queries, crashed));
    // The first adoption reports the error.
    this.#crashes.catch(() => {});
  }

  /**
   * Adopts a guest by `work`. Throws QuarantineError, without calling `work`, if its adoption has crashed the daemon too often; rejects
   * with the signal's reason if cancelled before its turn.
   */
  async guard<T>(row: Adopted, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { sandbox_id, org_id } = row;
    const crashes = (await this.#crashes).get(sandbox_id) ?? 0;
    if (crashes >= MAX_CRASHES) {
      throw new QuarantineError(`adopting it crashed the service ${crashes} times`);
    }
    if (crashes === 0) return await this.#noted(sandbox_id, work, this.#timesMs.together, () => {});
    const started = Promise.withResolvers<{ done: Promise<T> }>();
    const turn = async () => {
      this.#deps.log.warn("adopting a sandbox separately after a crash", { sandbox_id, crashes });
      const over = Promise.withResolvers<void>();
      started.resolve({ done: this.#inTurn(sandbox_id, work, over.resolve) });
      await over.promise;
    };
    this.#turns.through(org_id, turn, signal).catch(started.reject);
    return await (await started.promise).done;
  }

  /** The next daemon discards the notes, unless this one crashes. */
  stop(): void {
    this.#over.abort();
  }

  /** `onOver` is called once the service has survived with the guest for a while, or the turn's time limit has passed. */
  async #inTurn<T>(sandboxId: Adopted["sandbox_id"], work: () => Promise<T>, onOver: () => void): Promise<T> {
    const { turn, alone } = this.#timesMs;
    const timed = async () => {
      const late = startTimer(() => void this.#passOver(sandboxId).then(onOver), turn);
      return await work().finally(() => stopTimer(late));
    };
    return await this.#noted(sandboxId, timed, alone, onOver);
  }

  /** The next turn starts once the database has the note: a crash by the next guest is then not attributed to this one. */
  async #passOver(sandbox_id: Adopted["sandbox_id"]): Promise<void> {
    const { log } = this.#deps;
    log.warn("adoption of a sandbox is late; continuing with the others", { sandbox_id });
    await this.#note(sandbox_id, noteLateAdoption);
    // A stopping daemon adopts no more guests.
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

  /** A full disk does not prevent adoption. */
  async #note(sandbox_id: Adopted["sandbox_id"], write: typeof noteAdoption): Promise<void> {
    const { database, log } = this.#deps;
    await database
      .commit((queries) => write(queries, sandbox_id))
      .catch((error: unknown) => log.warn("failed to record an adoption", { sandbox_id, error: describeError(error) }));
  }
}

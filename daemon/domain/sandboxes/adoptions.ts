/**
 * Owns putting aside sandboxes whose being taken over crashes the service. A note in the database is there from before a guest is
 * touched until the service has lived on for a while; what is noted when the service crashes is under suspicion.
 *
 *   free ──crash──▶ suspected: taken over alone, one after another ──crash──▶ aside: not touched any more
 *     ▲                 │
 *     └─────────────────┘ the service lives on
 *
 * Only a crash counts (host/last-end.ts), and not that somebody has killed the service.
 */
import type { SandboxId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import { unlessGivenUp } from "../../core/published.ts";
import { describeError } from "../../core/service-error.ts";
import type { Database } from "../../db/transact.ts";
import { countAdoptions, forgetAdoption, noteAdoption } from "./store.ts";

/** By the first crash all that were being taken over are suspected, by the second the one that was alone. */
const MOST_CRASHES = 2;
/** What a guest does to whoever meets it, it does at once. Others wait for one that is taken over alone. */
const HEALTHY_MS = { together: 5_000, alone: 1_000 } as const;

/** `status.reason` of a sandbox that is put aside. */
export const QUARANTINED = "quarantined";

export class QuarantineError extends Error {
  override name = "QuarantineError";
}

export class Adoptions {
  readonly #deps: { database: Database; log: Log };
  readonly #crashes: Promise<Map<string, number>>;
  readonly #over = new AbortController();
  /** Settles when nobody is taken over alone. */
  #alone: Promise<unknown> = Promise.resolve();

  /** `crashed`: that is how the daemon before this one ended. */
  constructor(deps: { database: Database; log: Log }, crashed: boolean) {
    this.#deps = deps;
    this.#crashes = deps.database.commit((queries) => countAdoptions(queries, crashed));
    // Whoever takes over first hears of it.
    this.#crashes.catch(() => {});
  }

  /** Takes a guest over by `work`. Throws QuarantineError, and does nothing, when that has crashed the service too often. */
  async guard<T>(sandboxId: SandboxId, work: () => Promise<T>): Promise<T> {
    const crashes = (await this.#crashes).get(sandboxId) ?? 0;
    if (crashes >= MOST_CRASHES) {
      throw new QuarantineError(`taking it over crashed the service ${crashes} times`);
    }
    if (crashes === 0) return await this.#noted(sandboxId, work, HEALTHY_MS.together, () => {});
    const before = this.#alone;
    const turn = Promise.withResolvers<void>();
    this.#alone = turn.promise;
    await before;
    this.#deps.log.warn("sandbox taken over alone, after a crash", { sandbox_id: sandboxId, crashes });
    return await this.#noted(sandboxId, work, HEALTHY_MS.alone, turn.resolve);
  }

  /** Notes are forgotten by the next daemon, unless this one crashes. */
  stop(): void {
    this.#over.abort();
  }

  async #noted<T>(sandboxId: SandboxId, work: () => Promise<T>, healthyMs: number, onHealthy: () => void): Promise<T> {
    const { database, log } = this.#deps;
    const warned = (error: unknown) =>
      log.warn("adoption not noted", { sandbox_id: sandboxId, error: describeError(error) });
    // A full disk does not keep a guest from being taken over.
    await database.commit((queries) => noteAdoption(queries, sandboxId)).catch(warned);
    try {
      return await work();
    } finally {
      void unlessGivenUp(this.#over.signal, Bun.sleep(healthyMs)).then(
        async () => {
          (await this.#crashes).delete(sandboxId);
          await database.commit((queries) => forgetAdoption(queries, sandboxId)).catch(warned);
          onHealthy();
        },
        () => {},
      );
    }
  }
}

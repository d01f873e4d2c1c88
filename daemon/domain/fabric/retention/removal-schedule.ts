/**
 * Schedules the removal of messages that no agent needs any more (retention.ts defines which): when their organization's space runs short, the
 * oldest first, in portions. They are searched for outside of transactions, and a commit removes those found.
 *
 *     below 3/4 of the budget   nothing is removed
 *     above 3/4                 messages are removed until 1/2, while others send
 *     budget full               senders wait for it, for at most 1 s; messages that still do not fit are refused (budget.ts)
 */
import type { OrgId } from "../../../../shared/ids.ts";
import { monotonicMs } from "../../../core/clock.ts";
import { DeadlineError, Published } from "../../../core/concurrency/published.ts";
import type { Log } from "../../../core/log.ts";
import { loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { describeError } from "../../../core/service-error.ts";
import type { Database } from "../../../db/transact.ts";
import { type Budget, roomsWithMessages } from "./budget.ts";
import { findOld, removalsOf } from "./retention.ts";

const FROM = 3 / 4;
const TO = 1 / 2;
/** If a complete sweep frees less than this share, the next one starts after this delay, or after this multiple of its duration. */
const LITTLE = 1 / 16;
const AGAIN_MS = 1000;
const AGAIN_TIMES = 4;
/** Maximum wait of a sender for space. */
const SPACE_WAIT_MS = 1000;

/** Notifies its waiters after each removal of messages. */
type Sweep = Published<"under way" | "over">;

export class History {
  readonly #database: Database;
  readonly #budget: Budget;
  readonly #log: Log;
  /** Organizations with a sweep in progress. */
  readonly #sweeps = new Map<OrgId, Sweep>();
  /** Organizations after a sweep that freed little, with the earliest time of the next sweep. */
  readonly #later = new Map<OrgId, number>();
  #stopped = false;

  constructor(database: Database, budget: Budget, log: Log) {
    this.#database = database;
    this.#budget = budget;
    this.#log = log;
  }

  /** After a message was kept. */
  grown(orgId: OrgId): void {
    if (this.#isBeyond(orgId, FROM)) this.#begin(orgId);
  }

  /** Before a message is stored: resolves once there is space, the sweep is over, the sender disconnects, or a second has passed. */
  async makeSpace(orgId: OrgId, signal: () => AbortSignal): Promise<void> {
    const isFull = () => this.#isBeyond(orgId, 1 - LITTLE);
    if (!isFull()) return;
    this.#begin(orgId);
    const sweep = this.#sweeps.get(orgId);
    try {
      await sweep?.until((state) => state === "over" || !isFull(), SPACE_WAIT_MS, signal());
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
    }
  }

  #isBeyond(orgId: OrgId, share: number): boolean {
    const { most } = this.#budget;
    return most > 0 && this.#budget.taken(this.#database.queries, orgId) > share * most;
  }

  stop(): void {
    this.#stopped = true;
  }

  #begin(orgId: OrgId): void {
    if (this.#stopped || this.#sweeps.has(orgId) || monotonicMs() < (this.#later.get(orgId) ?? 0)) return;
    const startedAt = monotonicMs();
    const sweep: Sweep = new Published("under way");
    this.#sweeps.set(orgId, sweep);
    this.#run(orgId, sweep)
      .catch((error: unknown) => {
        this.#log.error("failed to remove messages", { error: describeError(error) });
        return 0;
      })
      .then((freed) => {
        const ended = monotonicMs();
        if (freed > LITTLE * this.#budget.most) this.#later.delete(orgId);
        else this.#later.set(orgId, ended + Math.max(AGAIN_MS, AGAIN_TIMES * (ended - startedAt)));
        this.#sweeps.delete(orgId);
        sweep.set("over");
      });
  }

  /** How many bytes have gone. */
  async #run(org_id: OrgId, sweep: Sweep): Promise<number> {
    const { queries } = this.#database;
    const pieces = new Pieces(loopTime, ownerOf(org_id), "retention");
    let freed = 0;
    for (const room_uid of roomsWithMessages(queries, org_id)) {
      for (let after: number | null = 0; after !== null && this.#isBeyond(org_id, TO); ) {
        await pieces.turn();
        if (this.#stopped) return freed;
        const old = findOld(queries, room_uid, after);
        after = old.after;
        for (const remove of removalsOf(old, this.#budget, { org_id, room_uid })) {
          freed += await this.#database.commit(remove);
          sweep.set("under way");
        }
      }
    }
    this.#log.debug("removed messages that no agent still had to read", { org_id, freed });
    return freed;
  }
}

/**
 * This host's anchors: the heads of its chains are written to the shared database soon after they grow, and when this daemon stops. Before
 * the first write, the previous anchors are compared with the chains: a host that was restored from an older backup, or that has lost
 * records, is behind them.
 */
import type { Anchor, AnchorStore } from "../../../core/anchor-store.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import { describeError } from "../../../core/service-error.ts";
import type { Database } from "../../../db/transact.ts";
import { type ChainKey, chainKey, orgOfChain } from "../chain/chain-key.ts";
import { chainHeads } from "../store.ts";
import { lostAnchors, tellLost } from "./anchored.ts";

const ADD_MS = 5_000;
/** Timeout at shutdown, so that an unavailable database does not delay it. */
const LAST_MS = 2_000;

export interface AnchorsDeps {
  database: Database;
  log: Log;
  store: AnchorStore;
  /** Delay from the first new record to the anchoring of its chain. */
  intervalMs: number;
}

export class Anchors {
  readonly #deps: AnchorsDeps;
  /** Seq of each chain's last anchor. */
  readonly #anchored = new Map<ChainKey, number>();
  #timer: Timer | null = null;
  #adding: Promise<void> = Promise.resolve();
  #stopped = false;
  /** Number of chains that end before an anchor or differ from it; null: unknown. */
  #lost: number | null = null;

  constructor(deps: AnchorsDeps) {
    this.#deps = deps;
  }

  /** Number of chains that lack an anchored record, as found by this daemon; null: unknown. */
  get lost(): number | null {
    return this.#lost;
  }

  /** Chains have grown. */
  expect(): void {
    if (this.#stopped) return;
    this.#timer ??= startTimer(() => void this.settle(), this.#deps.intervalMs).unref();
  }

  /** Anchors changed heads. Never rejects; failures are retried. */
  settle(deadlineMs = ADD_MS): Promise<void> {
    stopTimer(this.#timer);
    this.#timer = null;
    this.#adding = this.#adding.then(() =>
      this.#add(deadlineMs).catch((error: unknown) => {
        this.#deps.log.warn("failed to anchor the audit", { error: describeError(error) });
        this.expect();
      }),
    );
    return this.#adding;
  }

  /** Anchors for the last time. */
  stop(): Promise<void> {
    this.#stopped = true;
    return this.settle(LAST_MS);
  }

  async #add(deadlineMs: number): Promise<void> {
    const { database, store } = this.#deps;
    if (this.#lost === null) await this.#compare();
    // All that this commit reads is on disk when it completes: nothing is anchored that a crash could undo.
    const heads = await database.commit((queries) => chainHeads(queries), false);
    const moved = [...heads].filter(([key, { seq }]) => this.#anchored.get(key) !== seq);
    if (moved.length === 0) return;
    await store.add(
      moved.map(([key, { seq, hash }]) => ({ org_id: orgOfChain(key), seq, hash })),
      deadlineMs,
    );
    for (const [key, { seq }] of moved) this.#anchored.set(key, seq);
  }

  async #compare(): Promise<void> {
    const { database, log, store } = this.#deps;
    const { last, lost, told, chains } = await lostAnchors(database.queries, store);
    for (const { org_id, seq } of last) this.#anchored.set(chainKey(org_id), seq);
    for (const { org_id, seq } of lost) {
      log.error("the audit lacks a record that was anchored: run `roomd audit verify --host`", { org_id, seq });
    }
    const isTold = (anchor: Anchor) => told.some(({ org_id, seq }) => org_id === anchor.org_id && seq === anchor.seq);
    const untold = lost.filter((anchor) => !isTold(anchor));
    // Before the chains are anchored again: later anchors would hide the loss.
    if (untold.length > 0)
      await database.commit((queries) => untold.forEach((anchor) => void tellLost(queries, anchor)));
    this.#lost = chains;
  }
}

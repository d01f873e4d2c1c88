/**
 * Owns which messages go when the messages of an organization take too much: those that no agent still has to read, the oldest
 * first, some at a time. What is in an inbox never goes, nor a request that may still be answered, nor a room's last message,
 * which says where its order goes on.
 *
 *   below 3/4 of the budget    nothing goes
 *   beyond 3/4                 they go until 1/2, while others send
 *   all of it                  who sends waits for that; what then does not fit is refused (budget.ts)
 */
import { MAX_REPLY_WAIT_MS } from "../../../shared/api/fabric.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { at } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import { preparedBy, type Queries, rawQuery, rawStatement } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { type Budget, BYTES_OF_ROW, type Holder, markGone, roomsWithMessages } from "./budget.ts";
import { findDelivery, lastSeq } from "./store.ts";

const FROM = 3 / 4;
const TO = 1 / 2;
/** Messages looked at in one commit: some milliseconds' work. */
const AT_ONCE = 128;
/** Where all was looked at and less than this share could go, it is looked at again so much later, or so many times what it took. */
const LITTLE = 1 / 16;
const AGAIN_MS = 1000;
const AGAIN_TIMES = 4;

interface Looked {
  seq: number;
  kind: string;
  created_at: string;
  recipients: string;
  bytes: number;
}

const statementsOf = preparedBy((queries: Queries) => ({
  from: rawQuery<Looked>(
    queries,
    `SELECT seq, kind, created_at, recipients, ${BYTES_OF_ROW} AS bytes FROM messages
     WHERE room_uid = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT ${AT_ONCE}`,
  ),
  remove: rawStatement(queries, "DELETE FROM messages WHERE room_uid = ? AND seq = ?"),
  removeDelivery: rawStatement(queries, "DELETE FROM deliveries WHERE room_uid = ? AND agent_id = ? AND seq = ?"),
}));

export class History {
  readonly #database: Database;
  readonly #budget: Budget;
  readonly #log: Log;
  /** Organizations whose messages are looked through, each with the commit under way. */
  readonly #sweeps = new Map<OrgId, { portion: Promise<unknown> }>();
  /** Organizations of which little could go, and when that may be otherwise. */
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

  /** Before one is kept: resolves once there is space, or nothing more can go. */
  async makeSpace(orgId: OrgId): Promise<void> {
    if (!this.#isBeyond(orgId, 1 - LITTLE)) return;
    this.#begin(orgId);
    while (this.#isBeyond(orgId, 1 - LITTLE)) {
      const sweep = this.#sweeps.get(orgId);
      if (!sweep) return;
      await sweep.portion.catch(() => {});
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
    if (this.#stopped || this.#sweeps.has(orgId) || performance.now() < (this.#later.get(orgId) ?? 0)) return;
    const startedAt = performance.now();
    this.#sweeps.set(orgId, { portion: Promise.resolve() });
    this.#run(orgId)
      .catch((error: unknown) => {
        this.#log.error("messages not removed", { error: describeError(error) });
        return 0;
      })
      .then((freed) => {
        this.#sweeps.delete(orgId);
        const ended = performance.now();
        if (freed > LITTLE * this.#budget.most) this.#later.delete(orgId);
        else this.#later.set(orgId, ended + Math.max(AGAIN_MS, AGAIN_TIMES * (ended - startedAt)));
      });
  }

  /** How many bytes have gone. */
  async #run(org_id: OrgId): Promise<number> {
    let freed = 0;
    for (const room_uid of roomsWithMessages(this.#database.queries, org_id)) {
      for (let after: number | null = 0; after !== null && !this.#stopped && this.#isBeyond(org_id, TO); ) {
        const from: number = after;
        const portion = this.#database.commit((queries) => this.#removeSome(queries, { org_id, room_uid }, from));
        this.#sweeps.set(org_id, { portion });
        const looked: Awaited<typeof portion> = await portion;
        after = looked.after;
        freed += looked.bytes;
      }
    }
    this.#log.debug("messages that nobody still had to read were removed", { org_id, freed });
    return freed;
  }

  /** Within a transaction: up to where it has looked, null at the end, and how many bytes have gone. */
  #removeSome(queries: Queries, holder: Holder, after: number): { after: number | null; bytes: number } {
    const { from, remove, removeDelivery } = statementsOf(queries);
    const { room_uid } = holder;
    const looked = from([room_uid, after, lastSeq(queries, room_uid)]);
    const answerable = at(Date.now() - MAX_REPLY_WAIT_MS);
    let [bytes, last] = [0, 0];
    for (const { seq, kind, created_at, recipients, bytes: each } of looked) {
      const agents = JSON.parse(recipients) as string[];
      const mayBeAnswered = kind === "request" && agents.length > 0 && created_at > answerable;
      if (mayBeAnswered || agents.some((agent_id) => isOpen(queries, { room_uid, agent_id, seq }))) continue;
      for (const agent_id of agents) removeDelivery([room_uid, agent_id, seq]);
      remove([room_uid, seq]);
      [bytes, last] = [bytes + each, seq];
    }
    if (bytes > 0) {
      this.#budget.giveBack(queries, holder, bytes);
      markGone(queries, room_uid, last);
    }
    return { after: looked.length === AT_ONCE ? (looked.at(-1)?.seq ?? null) : null, bytes };
  }
}

function isOpen(queries: Queries, place: Parameters<typeof findDelivery>[1]): boolean {
  const state = findDelivery(queries, place)?.state;
  return state === "queued" || state === "delivered";
}

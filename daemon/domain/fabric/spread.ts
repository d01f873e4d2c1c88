/**
 * Messages with many recipients: their deliveries are written ahead, 256 per commit, and the commit that stores the messages makes them
 * visible. Until then no other message of the room is stored, so no reader's cursor passes them. A crash leaves deliveries without a
 * message, which the next start removes before it serves the room.
 *
 *   plan     checks all reasons for refusal in a transaction that is rolled back
 *   stage    deliveries, 256 per commit; the first commit also notes the spread
 *   keep     the messages, with deliveries of agents that joined in the meantime; removes the note
 */
import type { RoomUid } from "../../../shared/ids.ts";
import { wallMs } from "../../core/clock.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { loopTime, type OwnerName, Pieces } from "../../core/loop/index.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { branchedAt } from "./retention/budget.ts";
import type { Sequence } from "./sequence.ts";
import {
  deleteSpread,
  getSpread,
  insertDelivery,
  insertSpread,
  listSpreads,
  removeDeliveries,
  spreadSeq,
} from "./store.ts";
import type { DeliveryRow } from "./table.ts";

/** Deliveries of one commit: 4 ms if each inbox is on a database page of its own. */
export const MAX_AT_ONCE = 256;

/** Another call is spreading messages in this room. */
export class Busy extends Error {
  readonly over: Promise<void>;

  constructor(over: Promise<void>) {
    super("another call is still delivering messages in the room");
    this.over = over;
  }
}

/** Deliveries of one message. Rows are created on insertion: creating all together would block the event loop for milliseconds. */
export interface Deliveries {
  seq: number;
  recipients: readonly string[];
  rowOf(agentId: string): DeliveryRow;
}

/** The deliveries of a call's messages; thrown to roll back the plan. */
class Planned extends Error {
  readonly messages: readonly Deliveries[];

  constructor(messages: readonly Deliveries[]) {
    super("deliveries that are to be spread");
    this.messages = messages;
  }
}

const NO_AGENTS: ReadonlySet<string> = new Set();

/** Rows of all messages, MAX_AT_ONCE in each list. */
function* rowsOf(messages: readonly Deliveries[]): Generator<DeliveryRow[]> {
  let rows: DeliveryRow[] = [];
  for (const { recipients, rowOf } of messages) {
    for (const agentId of recipients) {
      rows.push(rowOf(agentId));
      if (rows.length < MAX_AT_ONCE) continue;
      yield rows;
      rows = [];
    }
  }
  if (rows.length > 0) yield rows;
}

/** The room was restored since the plan. */
class Moved extends Error {}

interface SpreadDeps {
  database: Database;
  order: Sequence;
}

/** The messages of one call, from the plan to the commit that stores them. */
export class Spread {
  readonly over: Promise<void>;
  /** Creation time of all messages of the spread, in Unix milliseconds: from then on no other message of the room is stored. */
  readonly startedAtMs = wallMs();
  /** Lets the room's other calls continue. */
  readonly leave: () => void;
  readonly #deps: SpreadDeps;
  readonly #roomUid: RoomUid;
  readonly #owner: OwnerName;
  readonly #pieces: Pieces;
  /** Agents of the staged deliveries, by seq. */
  #staged = new Map<number, Set<string>>();
  /** State of the current transaction: deliveries to stage, and messages with complete deliveries. */
  #planned: Deliveries[] = [];
  #kept = new Set<number>();
  #first: { seq: number; branchedAtMs: number } | null = null;

  constructor(deps: SpreadDeps, roomUid: RoomUid, owner: OwnerName, onLeft: () => void) {
    this.#deps = deps;
    this.#owner = owner;
    this.#pieces = new Pieces(loopTime, owner, "message.stage");
    this.#roomUid = roomUid;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    this.leave = () => {
      onLeft();
      resolve();
    };
  }

  /**
   * Calls `write`, which starts and ends a transaction of this spread, until it stores the messages. On failure removes all staged
   * deliveries.
   */
  async run<T>(write: () => Promise<T>, requireOpen: () => void): Promise<T> {
    let planned: readonly Deliveries[] = [];
    try {
      for (;;) {
        try {
          if (planned.length > 0) await this.#stage(planned, requireOpen);
          return await write();
        } catch (error) {
          planned = error instanceof Planned ? error.messages : [];
          if (error instanceof Moved) await this.#clear();
          else if (planned.length === 0) throw error;
        }
      }
    } catch (error) {
      await this.#clear();
      throw error;
    }
  }

  /** Starts the transaction that plans or stores the messages. Throws Moved. */
  begin(queries: Queries): void {
    this.#planned = [];
    this.#kept = new Set();
    if (this.#first !== null && !this.#isAsPlanned(queries)) throw new Moved();
  }

  /**
   * After the insertion of a message in this transaction: inserts its unstaged deliveries, removes staged ones of agents that have left.
   */
  deliver(queries: Queries, deliveries: Deliveries): void {
    const { seq, recipients, rowOf } = deliveries;
    if (this.#first === null) {
      if (recipients.length > 0) this.#planned.push(deliveries);
      return;
    }
    this.#kept.add(seq);
    const staged = this.#staged.get(seq) ?? NO_AGENTS;
    let taken = 0;
    for (const agentId of recipients) {
      if (staged.has(agentId)) taken++;
      else insertDelivery(queries, rowOf(agentId));
    }
    if (taken === staged.size) return;
    const present = new Set(recipients);
    this.#remove(
      queries,
      seq,
      [...staged].filter((agentId) => !present.has(agentId)),
    );
  }

  /** Ends the transaction. Throws Planned if deliveries must be staged first. */
  end(queries: Queries): void {
    if (this.#planned.length > 0) throw new Planned(this.#planned);
    if (this.#first === null) return;
    for (const [seq, agents] of this.#staged) if (!this.#kept.has(seq)) this.#remove(queries, seq, [...agents]);
    deleteSpread(queries, this.#roomUid);
  }

  #remove(queries: Queries, seq: number, agents: string[]): void {
    removeDeliveries(queries, this.#roomUid, [seq, seq], agents);
  }

  async #stage(messages: readonly Deliveries[], requireOpen: () => void): Promise<void> {
    const { database } = this.#deps;
    const lists = new Set(messages.map(({ recipients }) => recipients));
    const [only = []] = lists;
    const agents = lists.size === 1 ? only : [...new Set([...lists].flat())];
    let isFirst = true;
    for (const rows of rowsOf(messages)) {
      await this.#pieces.turn();
      await database.commit(
        (queries) => {
          requireOpen();
          if (isFirst) this.#begin(queries, messages[0]?.seq ?? 0, agents);
          else if (!this.#isAsPlanned(queries)) throw new Moved();
          for (const row of rows) insertDelivery(queries, row);
        },
        false,
        this.#owner,
      );
      isFirst = false;
      for (const { seq, agent_id } of rows) {
        const staged = this.#staged.get(seq) ?? new Set();
        this.#staged.set(seq, staged.add(agent_id));
      }
      await faultPoint("message.staged");
    }
  }

  #begin(queries: Queries, seq: number, agents: readonly string[]): void {
    const { order, database } = this.#deps;
    if (order.coming(queries, this.#roomUid) !== seq) throw new Moved();
    this.#first = { seq, branchedAtMs: branchedAt(queries, this.#roomUid) };
    database.undo(() => {
      this.#first = null;
    });
    insertSpread(queries, this.#roomUid, seq, agents);
  }

  #isAsPlanned(queries: Queries): boolean {
    return (
      this.#first?.branchedAtMs === branchedAt(queries, this.#roomUid) &&
      spreadSeq(queries, this.#roomUid) === this.#first.seq
    );
  }

  async #clear(): Promise<void> {
    if (this.#first === null) return;
    await clearSpread(this.#deps.database, this.#roomUid);
    this.#staged = new Map();
    this.#first = null;
  }
}

/** Spreads in progress: at most one per room. */
export class Spreads {
  readonly #deps: SpreadDeps;
  readonly #rooms = new Map<RoomUid, Spread>();

  constructor(deps: SpreadDeps) {
    this.#deps = deps;
  }

  /** Starts a spread after the room's current one. */
  async enter(roomUid: RoomUid, owner: OwnerName): Promise<Spread> {
    for (let other = this.#rooms.get(roomUid); other; other = this.#rooms.get(roomUid)) {
      await other.over;
      // Messages that waited for the spread are stored first.
      await this.#deps.database.commit(() => {}, true, owner);
    }
    const spread = new Spread(this.#deps, roomUid, owner, () => void this.#rooms.delete(roomUid));
    this.#rooms.set(roomUid, spread);
    return spread;
  }

  /** Within a transaction that stores messages outside of the spread `own`. Throws Busy. */
  requireNone(roomUid: RoomUid, own: Spread | null): void {
    const other = this.#rooms.get(roomUid);
    if (other && other !== own) throw new Busy(other.over);
  }

  /** Removes the leftovers of previous daemons. */
  async start(): Promise<void> {
    for (const room_uid of listSpreads(this.#deps.database.queries)) await clearSpread(this.#deps.database, room_uid);
  }
}

/** Removes deliveries of messages that were not stored, in batches of one commit each. */
async function clearSpread(database: Database, roomUid: RoomUid): Promise<void> {
  const found = getSpread(database.queries, roomUid);
  if (!found) return;
  const { seq, agents } = found;
  for (let at = 0; at < agents.length; at += MAX_AT_ONCE) {
    const some = agents.slice(at, at + MAX_AT_ONCE);
    await database.commit((queries) => {
      // A room that was restored has other rows by now.
      if (spreadSeq(queries, roomUid) === seq) removeDeliveries(queries, roomUid, [seq, Number.MAX_SAFE_INTEGER], some);
    });
  }
  await database.commit((queries) => deleteSpread(queries, roomUid));
}

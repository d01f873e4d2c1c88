/**
 * Capacity of inboxes. Per inbox an upper bound of its depth is cached: it grows by one with each message sent, and the inbox is counted
 * only when the bound exceeds the limit. Messages that leave an inbox only make the depth smaller than the bound.
 */
import { MAX_INBOX } from "../../../../shared/api/fabric.ts";
import type { RoomUid } from "../../../../shared/ids.ts";
import type { Pieces } from "../../../core/loop/index.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { inboxDepth } from "../store.ts";

/** Maximum of full inboxes listed in a refusal. Each refusal counts them again; a thousand take 90 ms. */
const MAX_FULL = 16;

export class InboxCapacity {
  readonly #database: Pick<Database, "undo">;
  readonly #rooms = new Map<RoomUid, Map<string, number>>();

  constructor(database: Pick<Database, "undo">) {
    this.#database = database;
  }

  /**
   * Within the transaction that sends to these agents. Returns some of the agents whose inboxes are full; if none exist, adds one to
   * the depth of each.
   */
  take(queries: Queries, roomUid: RoomUid, agentIds: readonly string[]): string[] {
    const most = this.#of(roomUid);
    const full: string[] = [];
    for (const agentId of agentIds) {
      if (this.#depthOf(queries, roomUid, agentId, most) >= MAX_INBOX) full.push(agentId);
      if (full.length === MAX_FULL) break;
    }
    if (full.length > 0) return full;
    add(most, agentIds, 1);
    // One undo step for all: thousands of steps take milliseconds.
    this.#database.undo(() => add(most, agentIds, -1));
    return full;
  }

  #depthOf(queries: Queries, roomUid: RoomUid, agentId: string, most: Map<string, number>): number {
    const known = most.get(agentId);
    if (known !== undefined && known < MAX_INBOX) return known;
    const depth = inboxDepth(queries, roomUid, agentId);
    most.set(agentId, depth);
    this.#database.undo(() => {
      if (known === undefined) most.delete(agentId);
      else most.set(agentId, known);
    });
    return depth;
  }

  /** Counts the inboxes that `take` needs, in pieces of the event loop. */
  async count(queries: Queries, roomUid: RoomUid, agentIds: readonly string[], pieces: Pieces): Promise<void> {
    const most = this.#of(roomUid);
    for (const agentId of agentIds) {
      const turn = pieces.next();
      if (turn) await turn;
      if (most.get(agentId) === undefined) most.set(agentId, inboxDepth(queries, roomUid, agentId));
    }
  }

  #of(roomUid: RoomUid): Map<string, number> {
    const most = this.#rooms.get(roomUid) ?? new Map<string, number>();
    this.#rooms.set(roomUid, most);
    return most;
  }

  forget(roomUid: RoomUid): void {
    this.#rooms.delete(roomUid);
  }
}

function add(most: Map<string, number>, agentIds: readonly string[], by: number): void {
  for (const agentId of agentIds) most.set(agentId, (most.get(agentId) ?? 0) + by);
}

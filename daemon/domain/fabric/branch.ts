/**
 * Branching of a room's messages: all of their rows, in one state.
 *
 * Names stay the same. A message_id, a seq and a cursor are looked up within a room, so the same values may exist in any number of rooms,
 * and an agent that has them in its memory acks, replies and reads on with them in whichever room it wakes up. A message that it resends
 * under the same message_id is recognized.
 *
 * A seq is never assigned twice in one room. A message that is sent after the room was restored has a higher seq than all before: a client
 * that was not restored with the room, for example an external orchestrator, misses nothing by its cursor and does not mistake one message
 * for another.
 *
 *     checkpoint at 7, continued to 9, restored:   1 … 7, then 10 …
 *     checkpoint at 7, another room made from it:  1 … 7, then 8 …
 *
 * A pending ack and a TTL continue with their remaining time. `created_at` is unchanged.
 */
import { at } from "../../core/clock.ts";
import { inPieces, loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { type Branch, type BranchedRoom, type Rows, stageRows, straysIn, takeRows } from "../../db/branch.ts";
import type { Queries } from "../../db/client.ts";
import { type RowsKey, rowsOf, useRows } from "../../db/room-rows.ts";
import type { FabricDeps } from "./deps.ts";
import { goneUpTo, markBranched } from "./retention/budget.ts";
import { deleteSpread, lastSeq, nextDue, removeSome } from "./store.ts";
import { deliveries, messages } from "./table.ts";
import { acceptFabric, bytesOfState, type FabricState } from "./untrusted.ts";

/** Some milliseconds of work if payloads have their maximum size. */
const REMOVED_AT_ONCE = 128;

export function makeBranch(deps: FabricDeps): Branch<FabricState> {
  const { bells, budget, database, due, history, space } = deps;
  /** Bytes of the messages of staged rows. */
  const staged = new Map<RowsKey, number>();
  const bytesOfStaged = ({ rows }: BranchedRoom) => {
    const bytes = staged.get(rows);
    if (bytes === undefined) throw new Error("the rows of a room's messages were not staged");
    return bytes;
  };
  const finish = (queries: Queries, state: FabricState, room: BranchedRoom, last_seq: number) => {
    markBranched(queries, room, { gone_seq: state.gone_seq, last_seq });
    space.forget(room.room_uid);
  };
  return {
    *take(queries, roomUid) {
      const last_seq = lastSeq(queries, roomUid);
      const rows = rowsOf(queries, roomUid);
      const taken = yield* takeRows(queries, deliveries, rows);
      const at = taken.columns.indexOf("seq");
      return {
        last_seq,
        gone_seq: goneUpTo(queries, roomUid),
        messages: yield* takeRows(queries, messages, rows),
        // Others are of messages that are being spread.
        deliveries: { ...taken, rows: taken.rows.filter((row) => Number(row[at]) <= last_seq) },
      };
    },

    stage: async (state, { org_id, room_uid, rows, pausedMs }, { over, requiresSpace }) => {
      const pieces = new Pieces(loopTime, ownerOf(org_id), "room.rows", { signal: over });
      const bytes = await inPieces(bytesOfState(state), pieces);
      const added = bytes - budget.ofRoom(database.queries, room_uid);
      if (requiresSpace && added > 0) budget.requireSpace(database.queries, org_id, added);
      staged.set(rows, bytes);
      const commits = { database, over };
      await stageRows(commits, messages, rows, state.messages, ofMessages(pausedMs));
      await stageRows(commits, deliveries, rows, state.deliveries, ofDeliveries(pausedMs));
    },

    /** Throws quota_exceeded if the organization's messages leave no space for these. */
    put: (queries, state, room) => {
      finish(queries, state, room, state.last_seq);
      budget.take(queries, room, bytesOfStaged(room));
    },

    strays: (queries) => [...new Set([...straysIn(queries, messages), ...straysIn(queries, deliveries)])],

    replace: (queries, state, room) => {
      const { room_uid } = room;
      const last = Math.max(state.last_seq, lastSeq(queries, room_uid));
      useRows(queries, room_uid, room.rows);
      deleteSpread(queries, room_uid);
      finish(queries, state, room, last);
      budget.add(queries, room, bytesOfStaged(room) - budget.ofRoom(queries, room_uid));
    },

    drop: async (rows) => {
      staged.delete(rows);
      while (await database.commit((queries) => removeSome(queries, rows, REMOVED_AT_ONCE))) {}
    },

    wake: async ({ org_id, room_uid, rows }) => {
      staged.delete(rows);
      const next = nextDue(database.queries);
      if (next !== null) due.expectAt(next);
      history.grown(org_id);
      bells.ringAll(room_uid);
    },

    /** Throws quota_exceeded before a row is written; `put` would throw it later. */
    accept: async (given, origin) => {
      const { state, bytes } = await acceptFabric(given, origin);
      if (origin.org_id !== null) budget.requireSpace(database.queries, origin.org_id, bytes);
      return state;
    },
  };
}

type Value = Rows["rows"][number][number];

const ofMessages = (pausedMs: number) => ({ expires_at: laterText(pausedMs) });
const ofDeliveries = (pausedMs: number) => ({ due_at_ms: laterMs(pausedMs), expires_at_ms: laterMs(pausedMs) });
const laterMs = (pausedMs: number) => (ms: Value) => (ms === null ? null : Number(ms) + pausedMs);
const laterText = (pausedMs: number) => (moment: Value) =>
  moment === null ? null : at(Date.parse(String(moment)) + pausedMs);

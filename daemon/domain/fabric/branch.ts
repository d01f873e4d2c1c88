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
import { inPieces, loopTime, ownerOf, Pieces, wholly } from "../../core/loop/index.ts";
import {
  type Branch,
  type BranchedRoom,
  putRows,
  type Rows,
  removeRows,
  stageRows,
  straysIn,
  takeRows,
} from "../../db/branch.ts";
import type { Queries } from "../../db/client.ts";
import type { FabricDeps } from "./deps.ts";
import { bytesOfRoom, goneUpTo, markBranched } from "./retention/budget.ts";
import { deleteSpread, lastSeq, nextDue } from "./store.ts";
import { deliveries, messages } from "./table.ts";
import { acceptFabric, bytesOfState, type FabricState } from "./untrusted.ts";

export function makeBranch(deps: FabricDeps): Branch<FabricState> {
  const { bells, budget, database, due, history, space } = deps;
  /** Of states that were staged. */
  const bytesOfStaged = new WeakMap<FabricState, number>();
  const finish = (queries: Queries, state: FabricState, room: BranchedRoom, last_seq: number) => {
    markBranched(queries, room, { gone_seq: state.gone_seq, last_seq });
    space.forget(room.room_uid);
  };
  return {
    *take(queries, roomUid) {
      const last_seq = lastSeq(queries, roomUid);
      const taken = yield* takeRows(queries, deliveries, roomUid);
      const at = taken.columns.indexOf("seq");
      return {
        last_seq,
        gone_seq: goneUpTo(queries, roomUid),
        messages: yield* takeRows(queries, messages, roomUid),
        // Others are of messages that are being spread.
        deliveries: { ...taken, rows: taken.rows.filter((row) => Number(row[at]) <= last_seq) },
      };
    },

    stage: async (state, { org_id, room_uid, pausedMs }, over) => {
      const pieces = new Pieces(loopTime, ownerOf(org_id), "room.rows", { signal: over });
      const bytes = await inPieces(bytesOfState(state), pieces);
      budget.requireSpace(database.queries, org_id, bytes);
      bytesOfStaged.set(state, bytes);
      const commits = { database, over };
      await stageRows(commits, messages, room_uid, state.messages, ofMessages(pausedMs));
      await stageRows(commits, deliveries, room_uid, state.deliveries, ofDeliveries(pausedMs));
    },

    /** Throws quota_exceeded if the organization's messages leave no space for these. */
    put: (queries, state, room) => {
      const bytes = bytesOfStaged.get(state);
      if (bytes === undefined) throw new Error("failed to stage the rows of a room's messages");
      finish(queries, state, room, state.last_seq);
      budget.take(queries, room, bytes);
    },

    strays: (queries) => [...new Set([...straysIn(queries, messages), ...straysIn(queries, deliveries)])],

    replace: (queries, state, room) => {
      const { room_uid, pausedMs } = room;
      const last = Math.max(state.last_seq, lastSeq(queries, room_uid));
      budget.giveBack(queries, room, bytesOfRoom(queries, room_uid));
      deleteSpread(queries, room_uid);
      removeRows(queries, deliveries, room_uid);
      removeRows(queries, messages, room_uid);
      putRows(queries, messages, room_uid, state.messages, ofMessages(pausedMs));
      putRows(queries, deliveries, room_uid, state.deliveries, ofDeliveries(pausedMs));
      finish(queries, state, room, last);
      budget.add(queries, room, bytesOfRoom(queries, room_uid));
    },

    requireSpace: (queries, state, { org_id, room_uid }) => {
      const asked = wholly(bytesOfState(state)) - bytesOfRoom(queries, room_uid);
      if (asked > 0) budget.requireSpace(queries, org_id, asked);
    },

    wake: async ({ org_id, room_uid }) => {
      const next = nextDue(database.queries);
      if (next !== null) due.expectAt(next);
      history.grown(org_id);
      bells.ringAll(room_uid);
    },

    /** Throws quota_exceeded before any of it is written, as put would then. */
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

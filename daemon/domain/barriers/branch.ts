/**
 * Branching of a room's barriers: every retained generation and its arrivals. Barrier names and generation numbers are looked up within a
 * room and stay the same: an agent arrives with them in whichever room it wakes up, and a repeated arrival counts as the same arrival.
 * Barriers have no timers: each waiting call has its own timeout.
 *
 * A room that was restored to a checkpoint continues to count generations from there. Calls that wait in a generation that was undone fail
 * with an error (arrive.ts).
 */
import type { RoomUid } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { type Branch, stageRows, straysIn, takeRows } from "../../db/branch.ts";
import { rowsOf, useRows } from "../../db/room-rows.ts";
import type { BarrierDeps } from "./deps.ts";
import { acceptBarriers, type BarriersState } from "./foreign.ts";
import { breakBarriers, removeSome, waitedForIn } from "./store.ts";
import { barriers } from "./table.ts";

/** `breakGone` breaks the barriers that wait for agents that are gone, in separate commits. */
export function makeBranch(
  { agents, bells, database, missing, space }: BarrierDeps,
  breakGone: (roomUid: RoomUid) => Promise<void>,
): Branch<BarriersState> {
  const finish: Branch<BarriersState>["put"] = (queries, state, { room_uid }) => {
    space.forget(room_uid);
    missing.forget(room_uid);
    if (state.gone.length > 0) breakBarriers(queries, room_uid, state.gone, now());
  };
  return {
    *take(queries, roomUid) {
      return {
        barriers: yield* takeRows(queries, barriers, rowsOf(queries, roomUid)),
        gone: waitedForIn(queries, roomUid).filter((agentId) => agents.isGone(roomUid, agentId)),
      };
    },
    // A room's own have space in it, and others were counted by accept.
    stage: ({ barriers: given }, { rows }, { over }) => stageRows({ database, over }, barriers, rows, given),
    put: finish,
    replace: (queries, state, room) => {
      useRows(queries, room.room_uid, room.rows);
      finish(queries, state, room);
    },
    drop: async (rows) => {
      while (await database.commit((queries) => removeSome(queries, rows))) {}
    },
    strays: (queries) => straysIn(queries, barriers),
    /** Also breaks the barriers that wait for agents that are gone by now. */
    wake: async ({ room_uid }) => {
      bells.ringAll(room_uid);
      await breakGone(room_uid);
    },
    accept: acceptBarriers,
  };
}

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
import { type Branch, putRows, removeRows, stageRows, straysIn, takeRows } from "../../db/branch.ts";
import type { BarrierDeps } from "./deps.ts";
import { acceptBarriers, type BarriersState } from "./foreign.ts";
import { breakBarriers, waitedForIn } from "./store.ts";
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
        barriers: yield* takeRows(queries, barriers, roomUid),
        gone: waitedForIn(queries, roomUid).filter((agentId) => agents.isGone(roomUid, agentId)),
      };
    },
    stage: ({ barriers: rows }, { room_uid }, over) => stageRows({ database, over }, barriers, room_uid, rows),
    put: finish,
    strays: (queries) => straysIn(queries, barriers),
    replace: (queries, state, room) => {
      removeRows(queries, barriers, room.room_uid);
      putRows(queries, barriers, room.room_uid, state.barriers);
      finish(queries, state, room);
    },
    // A room's own have space in it, and others were counted by accept.
    requireSpace: () => {},
    /** Also breaks the barriers that wait for agents that are gone by now. */
    wake: async ({ room_uid }) => {
      bells.ringAll(room_uid);
      await breakGone(room_uid);
    },
    accept: acceptBarriers,
  };
}

/**
 * Owns how the barriers of a room branch with it: every generation that is kept, and who has arrived in it. A barrier's name and the
 * number of a generation are looked up within a room, and stay as they are: an agent arrives by them wherever it wakes up, and
 * arriving again counts as the same arrival. Nothing of a barrier is due at a time: who waits brings its own patience.
 *
 * A room that was turned back counts its generations on from there. Who waits in one that was taken back is told so (arrive.ts).
 */
import type { RoomUid } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { type Branch, putRows, removeRows, stageRows, straysIn, takeRows } from "../../db/branch.ts";
import type { BarrierDeps } from "./deps.ts";
import { acceptBarriers, type BarriersState } from "./foreign.ts";
import { breakBarriers, waitedForIn } from "./store.ts";
import { barriers } from "./table.ts";

/** `breakGone` breaks what waits for agents that are gone, in commits of its own. */
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
    /** Also breaks what waits for agents that are gone by now. */
    wake: async ({ room_uid }) => {
      bells.ringAll(room_uid);
      await breakGone(room_uid);
    },
    accept: acceptBarriers,
  };
}

/** Barriers: points that the agents of a room pass together, generation after generation. */

import type { RoomUid } from "../../../shared/ids.ts";
import type { Bound } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { rowsOf } from "../../db/room-rows.ts";
import { Meetings } from "./arrival-traces.ts";
import { barrierBell, makeArrive } from "./arrive.ts";
import { makeBranch } from "./branch.ts";
import type { BarrierDeps } from "./deps.ts";
import { makeGet } from "./get.ts";
import { MissingParticipants } from "./missing-cache.ts";
import { BarrierSpace } from "./space.ts";
import { breakBarriers, isWaitingFor, openNames, waitedFor, waitedForIn } from "./store.ts";

export { missingOf } from "./state.ts";
export { findBarrier, openBarriers } from "./store.ts";
export type { BarrierRow } from "./table.ts";

/** Barriers broken in one commit: each has up to a thousand agents. */
const BROKEN_TOGETHER = 16;

export function makeBarriers(needs: Omit<BarrierDeps, "meetings" | "missing" | "space">) {
  const deps: BarrierDeps = {
    ...needs,
    meetings: new Meetings(),
    missing: new MissingParticipants(needs.database),
    space: new BarrierSpace(needs.database),
  };
  const { bells, database } = deps;
  /** Breaks the barriers that wait for this agent by name. */
  const agentGone = async (roomUid: RoomUid, agentId: string): Promise<void> => {
    const pieces = new Pieces(loopTime, "host", "barrier.break");
    const theirs: string[] = [];
    for (const barrierId of openNames(database.queries, roomUid)) {
      const turn = pieces.next();
      if (turn) await turn;
      if (isWaitingFor(database.queries, roomUid, barrierId, agentId)) theirs.push(barrierId);
    }
    for (let at = 0; at < theirs.length; at += BROKEN_TOGETHER) {
      const some = theirs.slice(at, at + BROKEN_TOGETHER);
      const broken = await database.commit((queries) => breakBarriers(queries, roomUid, [agentId], now(), some));
      for (const barrierId of broken) bells.ring(roomUid, barrierBell(barrierId));
    }
  };
  const breakGone = async (roomUid: RoomUid): Promise<void> => {
    for (const agentId of waitedForIn(database.queries, roomUid)) {
      if (deps.agents.isGone(roomUid, agentId)) await agentGone(roomUid, agentId);
    }
  };
  const branch = makeBranch(deps, breakGone);
  return {
    operations: [makeArrive(deps), ...makeGet(deps)] as Bound[],
    branch,
    agentGone,
    /** Breaks the barriers that still wait for agents that went while no daemon was running. */
    start: async (): Promise<void> => {
      const removedAgents = waitedFor(database.queries).filter((each) =>
        deps.agents.isGone(each.room_uid, each.agent_id),
      );
      for (const { room_uid, agent_id } of removedAgents) await agentGone(room_uid, agent_id);
    },
    /** Removes all barriers of a destroyed room, in batches of one commit each. */
    forget: async (roomUid: RoomUid): Promise<void> => {
      await branch.drop(rowsOf(database.queries, roomUid));
      deps.space.forget(roomUid);
    },
  };
}

/**
 * Owns how the agents of a room branch with it: who has taken part, when each was last seen, and the topics of each. An agent has
 * its name in a room, and the same name in another that is made from it.
 *
 * One whose sandbox is gone has none in the other room, where nobody would know that it is gone: its topics would fill an inbox that
 * nobody reads, until every message to them is refused. It does not go along. In the room itself its sandbox says what it is.
 */
import type { RoomUid } from "../../../shared/ids.ts";
import { type Branch, putRows, removeRows, stageRows, straysIn, takeRows, valuesIn } from "../../db/branch.ts";
import type { Database } from "../../db/transact.ts";
import { type AgentsState, acceptAgents } from "./foreign.ts";
import { agents } from "./table.ts";

interface Present {
  database: Pick<Database, "commit">;
  isGone(roomUid: RoomUid, agentId: string): boolean;
  /** Within the transaction that has changed who takes part. */
  changed(roomUid: RoomUid): void;
}

export function makeBranch({ database, isGone, changed }: Present): Branch<AgentsState> {
  return {
    *take(queries, roomUid) {
      const rows = yield* takeRows(queries, agents, roomUid);
      return {
        agents: rows,
        gone: valuesIn(rows, "agent_id")
          .map(String)
          .filter((name) => isGone(roomUid, name)),
      };
    },
    stage: async (state, { room_uid }, over) => {
      const names = valuesIn(state.agents, "agent_id");
      const gone = new Set(state.gone);
      const rows = state.agents.rows.filter((_, at) => !gone.has(String(names[at])));
      await stageRows({ database, over }, agents, room_uid, { ...state.agents, rows });
    },
    put: (_, _state, { room_uid }) => changed(room_uid),
    strays: (queries) => straysIn(queries, agents),
    replace: (queries, state, { room_uid }) => {
      removeRows(queries, agents, room_uid);
      putRows(queries, agents, room_uid, state.agents);
      changed(room_uid);
    },
    requireSpace: () => {},
    // Who waits for messages or at barriers is woken with those.
    wake: async () => {},
    accept: acceptAgents,
  };
}

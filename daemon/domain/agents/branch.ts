/**
 * Branching of a room's agents: the participants, their `last_seen_at` and their topics. An agent keeps its name in a room that is made
 * from this one.
 *
 * An agent with a gone sandbox is not copied to the other room, which has no sandbox row to show that it is gone: its topics would fill an
 * inbox without a reader until every message to them is refused. In the room itself the sandbox's state shows it.
 */
import type { RoomUid } from "../../../shared/ids.ts";
import { type Branch, stageRows, straysIn, takeRows, valuesIn } from "../../db/branch.ts";
import { rowsOf, useRows } from "../../db/room-rows.ts";
import type { Database } from "../../db/transact.ts";
import { type AgentsState, acceptAgents } from "./foreign.ts";
import { removeSome } from "./store.ts";
import { agents } from "./table.ts";

interface Present {
  database: Pick<Database, "commit">;
  isGone(roomUid: RoomUid, agentId: string): boolean;
  /** Called within the transaction that changed the participants. */
  changed(roomUid: RoomUid): void;
}

export function makeBranch({ database, isGone, changed }: Present): Branch<AgentsState> {
  return {
    *take(queries, roomUid) {
      const rows = yield* takeRows(queries, agents, rowsOf(queries, roomUid));
      return {
        agents: rows,
        gone: valuesIn(rows, "agent_id")
          .map(String)
          .filter((name) => isGone(roomUid, name)),
      };
    },
    stage: async (state, { rows: key }, { over, isOther }) => {
      const names = valuesIn(state.agents, "agent_id");
      const removedAgents = new Set(isOther ? state.gone : []);
      const rows = state.agents.rows.filter((_, at) => !removedAgents.has(String(names[at])));
      await stageRows({ database, over }, agents, key, { ...state.agents, rows });
    },
    put: (_, _state, { room_uid }) => changed(room_uid),
    replace: (queries, _state, { room_uid, rows }) => {
      useRows(queries, room_uid, rows);
      changed(room_uid);
    },
    drop: async (rows) => {
      while (await database.commit((queries) => removeSome(queries, rows))) {}
    },
    strays: (queries) => straysIn(queries, agents),
    // The branches of messages and barriers wake their own waiters.
    wake: async () => {},
    accept: acceptAgents,
  };
}

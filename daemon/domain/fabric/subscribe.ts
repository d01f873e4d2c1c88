/** agent_subscribe: sets the topics that an agent receives. */
import { agentSubscribe } from "../../../shared/api/fabric.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { findRoom, requireActive } from "../../core/call/room-target.ts";
import { ownerOf } from "../../core/loop/index.ts";
import { actingAs } from "../agents/index.ts";
import type { FabricDeps } from "./deps.ts";

export function makeSubscribe(deps: FabricDeps): Bound {
  const { agents, bells, database } = deps;
  return bind(agentSubscribe, {
    find: (call, params) => findRoom(deps, call, params),
    run: async (call, { agent_id, topics }, room) => {
      requireActive(room);
      actingAs(call.caller, agent_id, "agent_id");
      call.audit.agent_id = agent_id;
      call.audit.details = { topics: topics.length };
      agents.requireAlive(room.room_uid, agent_id);
      await database.commit(
        (queries) => {
          bells.requireOpen(room.room_uid);
          agents.subscribe(queries, room.room_uid, agent_id, topics);
        },
        false,
        ownerOf(room.org_id),
      );
      agents.learn(room.room_uid, [agent_id], true);
      return { outcome: "ok", body: { agent_id, topics } };
    },
  });
}

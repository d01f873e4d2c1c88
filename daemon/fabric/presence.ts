/** Owns agent_list: who is in a room, when each was last seen, what is in its inbox and what it waits for. */
import { agentList } from "../../shared/api/fabric.ts";
import { type Bound, bind } from "../core/operation.ts";
import { findRoom } from "./find.ts";
import type { FabricDeps } from "./index.ts";
import { inboxDepths } from "./store.ts";

export function makePresence(deps: FabricDeps): Bound {
  const { agents, database } = deps;
  return bind(agentList, {
    find: (call, params) => findRoom(deps, call, params),
    run: (_call, _input, { room_uid }) => {
      const depths = inboxDepths(database.queries, room_uid);
      const participants = agents.participants(room_uid);
      const states = new Map(agents.sandboxes(room_uid).map(({ agent_id, state }) => [agent_id, state]));
      const names = [...new Set([...states.keys(), ...participants.keys()])].sort();
      const items = names.map((agent_id) => ({
        agent_id,
        sandbox_state: states.get(agent_id) ?? agents.sandboxOf(room_uid, agent_id)?.state ?? null,
        last_seen_at: participants.get(agent_id)?.last_seen_at ?? null,
        inbox_depth: depths.get(agent_id) ?? 0,
        waiting_on: agents.waits.waitsOf(room_uid, agent_id),
        topics: participants.get(agent_id)?.topics ?? [],
      }));
      return { outcome: "ok", body: { items, next_cursor: null } };
    },
  });
}

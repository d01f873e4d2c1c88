/** Owns agent_list: who is in a room, when each was last seen, what is in its inbox and what it waits for. */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import { agentList } from "../../../shared/api/fabric.ts";
import { readCursor, toPage } from "../../core/cursor.ts";
import { type Bound, bind } from "../../core/operation.ts";
import type { FabricDeps } from "./deps.ts";
import { findRoom } from "./find.ts";
import { inboxDepth } from "./store.ts";

/** Of one agent, which may have any number of calls under way. */
const MOST_WAITS_SHOWN = 16;
/** Also of the room that this one was made from. */
const CURSOR = "agents";

export function makePresence(deps: FabricDeps): Bound {
  const { agents, database } = deps;
  return bind(agentList, {
    find: (call, params) => findRoom(deps, call, params),
    run: (_call, input, { room_uid }) => {
      const { queries } = database;
      const limit = input.limit ?? DEFAULT_PAGE;
      const after = readCursor(CURSOR, input.cursor);
      const participants = agents.participants(room_uid);
      const states = new Map(agents.sandboxes(room_uid).map(({ agent_id, state }) => [agent_id, state]));
      const names = [...new Set([...states.keys(), ...participants.keys()])].filter((name) => name > (after ?? ""));
      const page = toPage(CURSOR, names.sort().slice(0, limit + 1), limit, (name) => name);
      const items = page.rows.map((agent_id) => ({
        agent_id,
        sandbox_state: states.get(agent_id) ?? agents.sandboxOf(room_uid, agent_id)?.state ?? null,
        last_seen_at: participants.get(agent_id)?.last_seen_at ?? null,
        inbox_depth: inboxDepth(queries, room_uid, agent_id),
        waiting_on: agents.waits.waitsOf(room_uid, agent_id).slice(0, MOST_WAITS_SHOWN),
        topics: participants.get(agent_id)?.topics ?? [],
      }));
      return { outcome: "ok", body: { items, next_cursor: page.next_cursor } };
    },
  });
}

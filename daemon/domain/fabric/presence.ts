/** The `agent_list` call: the agents of a room, each with the time it was last seen, its inbox depth and its waits. */

import { DEFAULT_PAGE, type OutputOf } from "../../../shared/api/contract.ts";
import { agentList } from "../../../shared/api/fabric.ts";
import { readCursor, toPage } from "../../core/call/cursor.ts";
import { type Bound, bind, parsed } from "../../core/call/operation.ts";
import { findRoom } from "../../core/call/room-target.ts";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { type Reader, readNow } from "../../db/readers/here.ts";
import type { FabricDeps } from "./deps.ts";
import { type Inboxes, readDepths } from "./reads.ts";

/** Maximum of waits shown per agent, which may have many calls in progress. */
const MAX_WAITS_SHOWN = 16;
/** Number of inboxes counted on the event loop: cheaper than a round trip to a reader thread, and 2 ms if they are full. */
const FEW_INBOXES = 16;
/** Cursor kind without the room: a fork accepts the cursors of its source room. */
const CURSOR = "agents";

export function makePresence(deps: FabricDeps): Bound {
  const { agents } = deps;
  return bind(agentList, {
    find: (call, params) => findRoom(deps, call, params),
    run: async ({ caller, signal }, input, { room_uid }) => {
      const limit = input.limit ?? DEFAULT_PAGE;
      const after = readCursor(CURSOR, input.cursor);
      const participants = agents.participants(room_uid);
      const states = new Map(agents.sandboxes(room_uid).map(({ agent_id, state }) => [agent_id, state]));
      const names = [...new Set([...states.keys(), ...participants.keys()])].filter((name) => name > (after ?? ""));
      const page = toPage(CURSOR, names.sort().slice(0, limit + 1), limit, (name) => name);
      const pieces = new Pieces(loopTime, ownerOf(caller.org_id), agentList.name, { signal });
      const items: OutputOf<typeof agentList>["items"] = [];
      for (const agent_id of page.rows) {
        const turn = pieces.next();
        if (turn) await turn;
        items.push({
          agent_id,
          sandbox_state: states.get(agent_id) ?? agents.sandboxOf(room_uid, agent_id)?.state ?? null,
          last_seen_at: participants.get(agent_id)?.last_seen_at ?? null,
          inbox_depth: 0,
          waiting_on: agents.waits.waitsOf(room_uid, agent_id).slice(0, MAX_WAITS_SHOWN),
          topics: participants.get(agent_id)?.topics ?? [],
        });
      }
      const depths = await depthsOf(deps, { room_uid, agents: page.rows }, { owner: ownerOf(caller.org_id), signal });
      for (const [at, item] of items.entries()) item.inbox_depth = depths[at] ?? 0;
      return { outcome: "ok", body: { items, next_cursor: page.next_cursor } };
    },
  });
}

/** Counting a full inbox takes 0.1 ms. */
async function depthsOf({ database, reads }: FabricDeps, inboxes: Inboxes, by: Reader): Promise<number[]> {
  if (inboxes.agents.length <= FEW_INBOXES) return parsed(readNow(readDepths, database.queries, inboxes));
  return parsed(await reads.read(readDepths, inboxes, by));
}

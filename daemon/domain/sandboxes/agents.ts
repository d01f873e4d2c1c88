/** Lookups for messages between agents (the fabric): whether an agent of a room has a sandbox, and its state. */
import { and, desc, eq, notInArray, sql } from "drizzle-orm";
import type { RoomUid } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { sandboxes } from "./table.ts";

/** Prepared statements: every message needs one. */
export function makeAgentLookup(queries: Queries) {
  const { agent_id, state, fabric_attached, room_uid, sandbox_id } = sandboxes;
  const shown = { sandbox_id, agent_id, state, fabric_attached };
  const newest = queries
    .select(shown)
    .from(sandboxes)
    .where(and(eq(room_uid, sql.placeholder("room_uid")), eq(agent_id, sql.placeholder("agent_id"))))
    .orderBy(desc(sandbox_id))
    .limit(1)
    .prepare();
  const live = queries
    .select(shown)
    .from(sandboxes)
    .where(and(eq(room_uid, sql.placeholder("room_uid")), notInArray(state, ["failed", "destroying", "destroyed"])))
    .prepare();
  return {
    /** The newest sandbox of an agent, including a destroyed one. */
    agentOf: (roomUid: RoomUid, agentId: string) => newest.get({ room_uid: roomUid, agent_id: agentId }) ?? null,
    /** Agents with a sandbox that is neither failed, destroying nor destroyed. */
    liveAgents: (roomUid: RoomUid) => live.all({ room_uid: roomUid }),
  };
}

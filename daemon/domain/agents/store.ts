/** SQL of agents. */
import { and, eq, inArray, ne, sql } from "drizzle-orm";
import type { RoomUid } from "../../../shared/ids.ts";
import { preparedBy, type Queries, rawStatement } from "../../db/client.ts";
import { type AgentRow, agents } from "./table.ts";

const target = [agents.room_uid, agents.agent_id];
const inRoom = (roomUid: RoomUid) => eq(agents.room_uid, roomUid);

export function saveAgent(queries: Queries, row: AgentRow): void {
  const { topics, last_seen_at } = row;
  queries.insert(agents).values(row).onConflictDoUpdate({ target, set: { topics, last_seen_at } }).run();
}

const seen = preparedBy((queries) =>
  rawStatement(
    queries,
    `INSERT INTO agents (room_uid, agent_id, topics, last_seen_at) VALUES (?, ?, '[]', ?)
       ON CONFLICT (room_uid, agent_id) DO UPDATE SET last_seen_at = excluded.last_seen_at`,
  ),
);

/** A known agent keeps its topics. */
export function seeAgent(queries: Queries, roomUid: RoomUid, agentId: string, at: string): void {
  seen(queries)([roomUid, agentId, at]);
}

const oneOf = preparedBy((queries) =>
  queries
    .select()
    .from(agents)
    .where(and(eq(agents.room_uid, sql.placeholder("room_uid")), eq(agents.agent_id, sql.placeholder("agent_id"))))
    .prepare(),
);

export function findAgent(queries: Queries, roomUid: RoomUid, agentId: string): AgentRow | undefined {
  return oneOf(queries).get({ room_uid: roomUid, agent_id: agentId });
}

const ofRoom = preparedBy((queries) =>
  queries
    .select()
    .from(agents)
    .where(eq(agents.room_uid, sql.placeholder("room_uid")))
    .prepare(),
);

export function roomAgents(queries: Queries, roomUid: RoomUid): AgentRow[] {
  return ofRoom(queries).all({ room_uid: roomUid });
}

export function countAgents(queries: Queries, roomUid: RoomUid): number {
  const row = queries.select({ count: sql<number>`count(*)` }).from(agents).where(inRoom(roomUid)).get();
  return row?.count ?? 0;
}

/** How many topics the agents of a room subscribe to, but for one of them. */
export function roomTopics(queries: Queries, roomUid: RoomUid, except: string): number {
  const row = queries
    .select({ count: sql<number>`coalesce(sum(json_array_length(${agents.topics})), 0)` })
    .from(agents)
    .where(and(inRoom(roomUid), ne(agents.agent_id, except)))
    .get();
  return row?.count ?? 0;
}

export function forgetAgents(queries: Queries, roomUids: readonly RoomUid[]): void {
  queries
    .delete(agents)
    .where(inArray(agents.room_uid, [...roomUids]))
    .run();
}

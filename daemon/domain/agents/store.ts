/** Owns the SQL of agents. */
import { and, eq, inArray, ne, sql } from "drizzle-orm";
import type { RoomUid } from "../../../shared/ids.ts";
import { preparedBy, type Queries } from "../../db/client.ts";
import { type AgentRow, agents } from "./table.ts";

const target = [agents.room_uid, agents.agent_id];
const inRoom = (roomUid: RoomUid) => eq(agents.room_uid, roomUid);

export function saveAgent(queries: Queries, row: AgentRow): void {
  const { topics, last_seen_at } = row;
  queries.insert(agents).values(row).onConflictDoUpdate({ target, set: { topics, last_seen_at } }).run();
}

/** One that is known keeps its topics. */
export function seeAgent(queries: Queries, row: AgentRow): void {
  const { last_seen_at } = row;
  queries.insert(agents).values(row).onConflictDoUpdate({ target, set: { last_seen_at } }).run();
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

/** SQL of agents. */
import { and, eq, ne, sql } from "drizzle-orm";
import type { RoomUid } from "../../../shared/ids.ts";
import { preparedBy, type Queries, rawStatement } from "../../db/client.ts";
import { type RowsKey, rowsOf } from "../../db/room-rows.ts";
import { type AgentRow, agents } from "./table.ts";

const target = [agents.room_uid, agents.agent_id];
const inRoom = (queries: Queries, roomUid: RoomUid) => eq(agents.room_uid, rowsOf(queries, roomUid));

export function saveAgent(queries: Queries, row: AgentRow): void {
  const { topics, last_seen_at } = row;
  const stored = { ...row, room_uid: rowsOf(queries, row.room_uid) };
  queries.insert(agents).values(stored).onConflictDoUpdate({ target, set: { topics, last_seen_at } }).run();
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
  seen(queries)([rowsOf(queries, roomUid), agentId, at]);
}

const oneOf = preparedBy((queries) =>
  queries
    .select()
    .from(agents)
    .where(and(eq(agents.room_uid, sql.placeholder("room_uid")), eq(agents.agent_id, sql.placeholder("agent_id"))))
    .prepare(),
);

export function findAgent(queries: Queries, roomUid: RoomUid, agentId: string): AgentRow | undefined {
  const row = oneOf(queries).get({ room_uid: rowsOf(queries, roomUid), agent_id: agentId });
  return row && { ...row, room_uid: roomUid };
}

const ofRoom = preparedBy((queries) =>
  queries
    .select()
    .from(agents)
    .where(eq(agents.room_uid, sql.placeholder("room_uid")))
    .prepare(),
);

export function roomAgents(queries: Queries, roomUid: RoomUid): AgentRow[] {
  const rows = ofRoom(queries).all({ room_uid: rowsOf(queries, roomUid) });
  return rows.map((row) => ({ ...row, room_uid: roomUid }));
}

export function countAgents(queries: Queries, roomUid: RoomUid): number {
  const row = queries.select({ count: sql<number>`count(*)` }).from(agents).where(inRoom(queries, roomUid)).get();
  return row?.count ?? 0;
}

/** Number of topics that the agents of a room subscribe to, without those of agent `except`. */
export function roomTopics(queries: Queries, roomUid: RoomUid, except: string): number {
  const row = queries
    .select({ count: sql<number>`coalesce(sum(json_array_length(${agents.topics})), 0)` })
    .from(agents)
    .where(and(inRoom(queries, roomUid), ne(agents.agent_id, except)))
    .get();
  return row?.count ?? 0;
}

/** In one commit: each may have a thousand topics. */
const MAX_REMOVED = 128;

/** Removes some agents of a row set; returns false if there were none. Bounded by MAX_REMOVED. */
export function removeSome(queries: Queries, rows: RowsKey): boolean {
  const key = sql`room_uid, agent_id`;
  const some = sql`SELECT ${key} FROM ${agents} WHERE room_uid = ${rows} LIMIT ${MAX_REMOVED}`;
  return queries.all(sql`DELETE FROM ${agents} WHERE (${key}) IN (${some}) RETURNING agent_id`).length > 0;
}

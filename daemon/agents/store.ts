/** Owns the SQL of agents. */
import { eq, inArray } from "drizzle-orm";
import type { RoomUid } from "../../shared/ids.ts";
import type { Queries } from "../db/client.ts";
import { type AgentRow, agents } from "./table.ts";

export function saveAgent(queries: Queries, row: AgentRow): void {
  const { topics, last_seen_at } = row;
  queries
    .insert(agents)
    .values(row)
    .onConflictDoUpdate({ target: [agents.room_uid, agents.agent_id], set: { topics, last_seen_at } })
    .run();
}

export function roomAgents(queries: Queries, roomUid: RoomUid): AgentRow[] {
  return queries.select().from(agents).where(eq(agents.room_uid, roomUid)).all();
}

export function forgetAgents(queries: Queries, roomUids: readonly RoomUid[]): void {
  queries
    .delete(agents)
    .where(inArray(agents.room_uid, [...roomUids]))
    .run();
}

/**
 * Selection of destroyed sandboxes for the deletion of their rows: those of ended rooms, and in a room all but the newest of each agent.
 * The newest remains as long as the room, so that senders of messages to the agent learn that it is gone.
 */
import { sql } from "drizzle-orm";
import type { RoomUid, SandboxId } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { sandboxes } from "../table.ts";

export const MAX_ENDED_SANDBOXES = 1000;
const AT_ONCE = 100;

/** Has the same text as the condition of the partial index. */
const hasEnded = sql`${sandboxes.state} = 'destroyed' AND ${sandboxes.cid_held} = 0`;

/** A batch of destroyed sandboxes in rooms that have ended or no longer exist. */
export function endedWithRooms(queries: Queries): SandboxId[] {
  return ids(
    queries,
    sql`
    SELECT sandbox_id FROM sandboxes JOIN rooms USING (room_uid)
    WHERE ${hasEnded} AND rooms.state = 'destroyed' LIMIT ${AT_ONCE}`,
  );
}

/** A batch of destroyed sandboxes in live rooms, beyond the newest `most` of each room. */
export function endedLongAgo(queries: Queries, most = MAX_ENDED_SANDBOXES): SandboxId[] {
  const crowded = queries.all<{ room_uid: RoomUid }>(sql`
    SELECT room_uid FROM sandboxes WHERE ${sandboxes.state} = 'destroyed' GROUP BY room_uid HAVING count(*) > ${most}`);
  return crowded.flatMap(({ room_uid }) =>
    ids(
      queries,
      sql`
      SELECT sandbox_id FROM sandboxes WHERE room_uid = ${room_uid} AND ${hasEnded}
        AND sandbox_id < (SELECT sandbox_id FROM sandboxes WHERE room_uid = ${room_uid} AND ${sandboxes.state} = 'destroyed'
                          ORDER BY sandbox_id DESC LIMIT 1 OFFSET ${most - 1})
        AND EXISTS (SELECT 1 FROM sandboxes AS newer WHERE newer.room_uid = ${room_uid}
                    AND newer.agent_id = ${sandboxes.agent_id} AND newer.sandbox_id > ${sandboxes.sandbox_id})
      ORDER BY sandbox_id LIMIT ${AT_ONCE}`,
    ),
  );
}

/** Within a transaction; no other row may refer to the sandbox. */
export function forgetSandbox(queries: Queries, sandboxId: SandboxId): void {
  queries.run(sql`DELETE FROM sandboxes WHERE sandbox_id = ${sandboxId} AND ${hasEnded}`);
}

/** Whether it is not forgotten. */
export function isKept(queries: Queries, sandboxId: SandboxId): boolean {
  return ids(queries, sql`SELECT sandbox_id FROM sandboxes WHERE sandbox_id = ${sandboxId}`).length > 0;
}

function ids(queries: Queries, query: ReturnType<typeof sql>): SandboxId[] {
  return queries.all<{ sandbox_id: SandboxId }>(query).map(({ sandbox_id }) => sandbox_id);
}

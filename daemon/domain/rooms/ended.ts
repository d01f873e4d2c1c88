/**
 * Retention of destroyed rooms in lists: for the retention time of records, and at most the newest MAX_ENDED_ROOMS per organization. A
 * room with a kept drive stays. Its audit and usage records have their own retention.
 */
import { and, desc, eq, isNull, lt, sql } from "drizzle-orm";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { forgetNumbers } from "../audit/index.ts";
import { rooms } from "./table.ts";

export const MAX_ENDED_ROOMS = 10_000;
const AT_ONCE = 100;

/** Has the same text as the condition of the partial index. */
const hasEnded = sql`${rooms.state} = 'destroyed'`;

/** Some destroyed rooms of an organization that are no longer listed: from before a moment, or beyond the newest `most`. */
export function roomsToForget(queries: Queries, orgId: OrgId, before: string, most = MAX_ENDED_ROOMS): RoomUid[] {
  const ofOrg = and(eq(rooms.org_id, orgId), hasEnded);
  const beyond = queries
    .select({ at: rooms.last_transition_at })
    .from(rooms)
    .where(ofOrg)
    .orderBy(desc(rooms.last_transition_at))
    .limit(1)
    .offset(most - 1)
    .get();
  const until = beyond && beyond.at > before ? beyond.at : before;
  const due = and(ofOrg, lt(rooms.last_transition_at, until), isNull(rooms.drive_until_at));
  const rows = queries.select({ room_uid: rooms.room_uid }).from(rooms).where(due).limit(AT_ONCE).all();
  return rows.map(({ room_uid }) => room_uid);
}

/** Within a transaction; its sandboxes are gone. A room that has returned to this host in the meantime stays. */
export function forgetRoom(queries: Queries, roomUid: RoomUid): void {
  const forgotten = queries
    .delete(rooms)
    .where(and(eq(rooms.room_uid, roomUid), hasEnded))
    .returning({ room_uid: rooms.room_uid })
    .all();
  for (const { room_uid } of forgotten) forgetNumbers(queries, room_uid);
}

/** Owns which requests have no reply yet: who asked whom, and since when. */
import { and, asc, eq, sql } from "drizzle-orm";
import type { RoomUid } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { AWAITED } from "./store.ts";
import { deliveries, messages } from "./table.ts";

/** One recipient of a request, who has not replied. */
export interface OpenRequest {
  message_id: string;
  source: string;
  recipient: string;
  topic: string | null;
  created_at: string;
}

/** The oldest first; not what has expired. Its index has only what is open. */
export function openRequests(queries: Queries, roomUid: RoomUid, limit: number): OpenRequest[] {
  const { message_id, source, topic, created_at } = messages;
  return queries
    .select({ message_id, source, recipient: deliveries.agent_id, topic, created_at })
    .from(deliveries)
    .innerJoin(messages, and(eq(messages.room_uid, deliveries.room_uid), eq(messages.seq, deliveries.seq)))
    .where(
      and(
        eq(deliveries.room_uid, roomUid),
        AWAITED,
        sql`(${deliveries.expires_at_ms} IS NULL OR ${deliveries.expires_at_ms} > ${Date.now()})`,
      ),
    )
    .orderBy(asc(deliveries.seq), asc(deliveries.agent_id))
    .limit(limit)
    .all();
}

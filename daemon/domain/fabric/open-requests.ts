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

/** What has expired after it was read is in the index, too: so many are looked at for one that is open. */
const LOOKS_FOR_ONE = 4;

/** The oldest first; not what has expired. Its index has what nobody has replied to. */
export function openRequests(queries: Queries, roomUid: RoomUid, limit: number): OpenRequest[] {
  const { message_id, source, topic, created_at } = messages;
  const { seq, agent_id, expires_at_ms } = deliveries;
  const looked = queries
    .select({ seq, agent_id, expires_at_ms })
    .from(deliveries)
    .where(and(eq(deliveries.room_uid, roomUid), AWAITED))
    .orderBy(asc(seq), asc(agent_id))
    .limit(limit * LOOKS_FOR_ONE)
    .as("looked");
  return queries
    .select({ message_id, source, recipient: looked.agent_id, topic, created_at })
    .from(looked)
    .innerJoin(messages, and(eq(messages.room_uid, roomUid), eq(messages.seq, looked.seq)))
    .where(sql`(${looked.expires_at_ms} IS NULL OR ${looked.expires_at_ms} > ${Date.now()})`)
    .orderBy(asc(looked.seq), asc(looked.agent_id))
    .limit(limit)
    .all();
}

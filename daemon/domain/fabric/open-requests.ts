/** Owns which requests have no reply yet: who asked whom, and since when. */
import type { RoomUid } from "../../../shared/ids.ts";
import { wallMs } from "../../core/clock.ts";
import { preparedBy, type Queries, rawQuery } from "../../db/client.ts";

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

/** The oldest first; not what has expired. Its index has what nobody has replied to. Prepared: all rooms of a list are asked. */
export function openRequests(queries: Queries, roomUid: RoomUid, limit: number): OpenRequest[] {
  return statementOf(queries)([roomUid, limit * LOOKS_FOR_ONE, roomUid, wallMs(), limit]);
}

const statementOf = preparedBy((queries) =>
  rawQuery<OpenRequest>(
    queries,
    `SELECT asked.message_id, asked.source, looked.agent_id AS recipient, asked.topic, asked.created_at
     FROM (
       SELECT seq, agent_id, expires_at_ms FROM deliveries
       WHERE room_uid = ? AND awaited = 1 ORDER BY seq, agent_id LIMIT ?
     ) AS looked JOIN messages AS asked ON asked.room_uid = ? AND asked.seq = looked.seq
     WHERE looked.expires_at_ms IS NULL OR looked.expires_at_ms > ?
     ORDER BY looked.seq, looked.agent_id LIMIT ?`,
  ),
);

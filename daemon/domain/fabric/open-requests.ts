/** Requests without a reply: source, recipient and time. */
import type { RoomUid } from "../../../shared/ids.ts";
import { wallMs } from "../../core/clock.ts";
import { preparedBy, type Queries, rawQuery } from "../../db/client.ts";
import { rowsOf } from "../../db/room-rows.ts";

/** One recipient of a request that has not replied. */
export interface OpenRequest {
  message_id: string;
  source: string;
  recipient: string;
  topic: string | null;
  created_at: string;
}

/** The index also contains requests that expired after they were read: rows that are examined per open one. */
const LOOKS_FOR_ONE = 4;

/**
 * The oldest first, without expired ones. Uses the index of deliveries without a reply. Prepared, since it runs for every room of a list.
 */
export function openRequests(queries: Queries, roomUid: RoomUid, limit: number): OpenRequest[] {
  const rows = rowsOf(queries, roomUid);
  return statementOf(queries)([rows, limit * LOOKS_FOR_ONE, rows, wallMs(), limit]);
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

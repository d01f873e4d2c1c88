/**
 * Finds messages that no agent needs any more, and removes them. Messages in an inbox are needed, and a room's last message, from which its
 * sequence continues. Others are needed as long as a client may still request them (neededMs).
 */
import { MAX_REPLY_WAIT_MS, MESSAGE_ID_KEPT_MS } from "../../../../shared/api/fabric.ts";
import type { RoomUid } from "../../../../shared/ids.ts";
import { wallMs } from "../../../core/clock.ts";
import { preparedBy, type Queries, rawQuery, rawStatement } from "../../../db/client.ts";
import { rowsOf } from "../../../db/room-rows.ts";
import { lastSeq } from "../store.ts";
import type { MessageRow } from "../table.ts";
import { type Budget, BYTES_OF_ROW, branchedAt, type Holder, markGone } from "./budget.ts";

/** Rows that are examined in one turn, and removed in one commit: some milliseconds of work. */
const MESSAGES_AT_ONCE = 128;
/** One message may have more: its recipients are examined in one statement, and removed in several commits. */
const RECIPIENTS_AT_ONCE = 2000;

interface Looked extends Pick<MessageRow, "seq" | "kind" | "reply_to" | "fingerprint" | "created_at"> {
  recipients: number;
  is_open: 0 | 1;
}

const statementsOf = preparedBy((queries: Queries) => ({
  next: rawQuery<Looked>(
    queries,
    `SELECT seq, kind, reply_to, fingerprint, created_at, json_array_length(recipients) AS recipients,
       EXISTS (
         SELECT 1 FROM json_each(messages.recipients) AS recipient CROSS JOIN deliveries
         WHERE deliveries.room_uid = messages.room_uid AND deliveries.agent_id = recipient.value
           AND deliveries.seq = messages.seq AND deliveries.state IN ('queued', 'delivered')
       ) AS is_open
     FROM messages WHERE room_uid = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT 1`,
  ),
  removeDeliveries: rawStatement(
    queries,
    `DELETE FROM deliveries WHERE room_uid = ?1 AND seq = ?2 AND agent_id IN (
       SELECT value FROM json_each((SELECT recipients FROM messages WHERE room_uid = ?1 AND seq = ?2))
       WHERE key >= ?3 AND key < ?4)`,
  ),
  removeMessage: rawQuery<{ bytes: number }>(
    queries,
    `DELETE FROM messages WHERE room_uid = ? AND seq = ? RETURNING ${BYTES_OF_ROW} AS bytes`,
  ),
}));

export interface Old {
  seq: number;
  recipients: number;
}

export interface Look {
  found: Old[];
  /** Position up to which rows were examined: null at the end. */
  after: number | null;
  /** Time of the room's last restore, as of this search. */
  branchedAtMs: number;
}

/** The next batch of removable messages after a position. */
export function findOld(queries: Queries, roomUid: RoomUid, after: number): Look {
  const { next } = statementsOf(queries);
  const last = lastSeq(queries, roomUid);
  const rows = rowsOf(queries, roomUid);
  const branchedAtMs = branchedAt(queries, roomUid);
  const nowMs = wallMs();
  const found: Old[] = [];
  let [at, recipients] = [after, 0];
  for (let inspected = 0; inspected < MESSAGES_AT_ONCE && recipients < RECIPIENTS_AT_ONCE; inspected++) {
    const row = next([rows, at, last])[0];
    if (!row) return { found, after: null, branchedAtMs };
    if (!row.is_open && isPast(row, branchedAtMs, nowMs)) found.push(row);
    at = row.seq;
    recipients += row.recipients;
  }
  return { found, after: at, branchedAtMs };
}

/** No client could request the messages of a checkpoint while it was stored: their time starts again with the branch. */
function isPast(row: Looked, branchedAtMs: number, nowMs: number): boolean {
  const ms = neededMs(row);
  return ms === 0 || Math.max(Date.parse(row.created_at), branchedAtMs) <= nowMs - ms;
}

/** How long a client may still request a message that is in no inbox, counted from when it was sent. */
function neededMs({ kind, reply_to, fingerprint, recipients }: Looked): number {
  // A sender that named it may resend it, and gets this one as the result.
  const namedMs = fingerprint === "" ? 0 : MESSAGE_ID_KEPT_MS;
  // May be answered, and then requested again.
  if (kind === "request" && recipients > 0) return MAX_REPLY_WAIT_MS + namedMs;
  // The requester may repeat its request, and gets this response.
  if (kind === "response" && reply_to !== null && recipients > 0) return MESSAGE_ID_KEPT_MS;
  return namedMs;
}

/**
 * Returns functions that remove these messages, each to be called in a transaction, in order; each returns the number of bytes freed. They
 * do nothing if the room was restored since the search: a message that was not needed then may be in an inbox again.
 */
export function removalsOf(
  { found, branchedAtMs }: Pick<Look, "found" | "branchedAtMs">,
  budget: Budget,
  holder: Holder,
): ((queries: Queries) => number)[] {
  const last = found.at(-1);
  if (!last) return [];
  const slices: ((queries: Queries) => number)[] = [];
  for (let from = 0; from + RECIPIENTS_AT_ONCE < last.recipients; from += RECIPIENTS_AT_ONCE) {
    slices.push((queries) => {
      statementsOf(queries).removeDeliveries([
        rowsOf(queries, holder.room_uid),
        last.seq,
        from,
        from + RECIPIENTS_AT_ONCE,
      ]);
      return 0;
    });
  }
  const all = [...slices, (queries: Queries) => remove(queries, found, budget, holder)];
  return all.map((each) => (queries) => (branchedAt(queries, holder.room_uid) === branchedAtMs ? each(queries) : 0));
}

/** Rows that another transaction has removed since the search count as freed by that one. */
function remove(queries: Queries, found: readonly Old[], budget: Budget, holder: Holder): number {
  const { removeDeliveries, removeMessage } = statementsOf(queries);
  const { room_uid } = holder;
  const rows = rowsOf(queries, room_uid);
  let [bytes, last] = [0, 0];
  for (const { seq, recipients } of found) {
    removeDeliveries([rows, seq, 0, recipients]);
    for (const removed of removeMessage([rows, seq])) [bytes, last] = [bytes + removed.bytes, seq];
  }
  if (bytes > 0) {
    budget.giveBack(queries, holder, bytes);
    markGone(queries, room_uid, last);
  }
  return bytes;
}

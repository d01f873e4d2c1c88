/** SQL of messages. Statements that run once per message are prepared. */
import { and, desc, eq, inArray, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import { wallMs } from "../../core/clock.ts";
import { preparedBy, type Queries, rawInsert, rawQuery, rawStatement } from "../../db/client.ts";
import { type RowsKey, rowsIn, rowsOf } from "../../db/room-rows.ts";
import { type DeliveryRow, deliveries, type MessageRow, messageRooms, messageSpreads, messages } from "./table.ts";

/** Literals, not parameters, so that the partial index of open deliveries is used. */
export const OPEN: SQL = sql`${deliveries.state} IN ('queued', 'delivered')`;

/** Likewise, for the index of requests without a reply. */
const AWAITED: SQL = sql`${deliveries.awaited} = 1`;

const room_uid = sql.placeholder("room_uid");
const agent_id = sql.placeholder("agent_id");
const seq = sql.placeholder("seq");

/** Prepared once per connection: every message runs these. */
function prepare(queries: Queries) {
  const mine = and(eq(deliveries.room_uid, room_uid), eq(deliveries.agent_id, agent_id));
  return {
    last: rawQuery<{ seq: number }>(
      queries,
      `SELECT max(
         ifnull((SELECT max(seq) FROM messages WHERE room_uid = ?2), 0),
         ifnull((SELECT last_seq FROM message_rooms WHERE room_uid = ?1), 0)) AS seq`,
    ),
    byId: queries
      .select()
      .from(messages)
      .where(and(eq(messages.room_uid, room_uid), eq(messages.message_id, sql.placeholder("message_id"))))
      .prepare(),
    insertMessage: rawInsert(queries, messages),
    insertDelivery: rawInsert(queries, deliveries),
    removeDeliveries: rawStatement(
      queries,
      `DELETE FROM deliveries WHERE room_uid = ?1 AND seq BETWEEN ?2 AND ?3
         AND agent_id IN (SELECT value FROM json_each(?4))`,
    ),
    depth: rawQuery<{ depth: number }>(
      queries,
      "SELECT count(*) AS depth FROM deliveries WHERE room_uid = ? AND agent_id = ? AND state IN ('queued', 'delivered')",
    ),
    delivery: queries
      .select()
      .from(deliveries)
      .where(and(mine, eq(deliveries.seq, seq)))
      .prepare(),
    reply: queries
      .select()
      .from(messages)
      .where(
        and(
          eq(messages.room_uid, room_uid),
          eq(messages.reply_to, sql.placeholder("reply_to")),
          eq(messages.source, sql.placeholder("source")),
          eq(messages.kind, "response"),
          sql`EXISTS (SELECT 1 FROM ${deliveries} WHERE ${mine} AND ${deliveries.seq} = ${messages.seq})`,
        ),
      )
      .orderBy(messages.seq)
      .limit(1)
      .prepare(),
    handOut: queries
      .update(deliveries)
      .set({
        state: "delivered",
        attempts: sql`${deliveries.attempts} + 1`,
        due_at_ms: sql`CASE WHEN ${deliveries.ack_required} THEN min(${sql.placeholder("due_at_ms")}, ifnull(${deliveries.expires_at_ms}, ${sql.placeholder("due_at_ms")})) ELSE ${deliveries.expires_at_ms} END`,
      })
      .where(and(mine, eq(deliveries.seq, seq), sql`${deliveries.state} = 'queued'`))
      .prepare(),
    ack: queries
      .update(deliveries)
      .set({ state: "acked", due_at_ms: null })
      .where(
        and(
          mine,
          eq(deliveries.seq, seq),
          sql`${deliveries.state} IN ('queued', 'delivered', 'read', 'undeliverable')`,
        ),
      )
      .prepare(),
    change: rawStatement(
      queries,
      `UPDATE deliveries SET state = ?, due_at_ms = ?, awaited = iif(?, 0, awaited)
       WHERE room_uid = ? AND agent_id = ? AND seq = ? AND state IN ('queued', 'delivered')`,
    ),
    unread: queries
      .select({ seq: deliveries.seq })
      .from(deliveries)
      .where(and(mine, OPEN, sql`${deliveries.seq} <= ${seq}`, sql`NOT ${deliveries.ack_required}`))
      .limit(1)
      .prepare(),
    read: queries
      .update(deliveries)
      .set({ state: "read", due_at_ms: null })
      .where(and(mine, OPEN, sql`${deliveries.seq} <= ${seq}`, sql`NOT ${deliveries.ack_required}`))
      .prepare(),
  };
}

const statementsOf = preparedBy(prepare);

/** The values of a row's place, as the tables have them. */
const stored = (queries: Queries, place: { room_uid: RoomUid; agent_id: string }): Record<string, unknown> => ({
  ...place,
  room_uid: rowsOf(queries, place.room_uid),
});

interface InboxPosition {
  room_uid: RoomUid;
  agent_id: string;
  seq: number;
}

/** The last seq that a room assigned; 0 if none. */
export function lastSeq(queries: Queries, roomUid: RoomUid): number {
  return statementsOf(queries).last([roomUid, rowsOf(queries, roomUid)])[0]?.seq ?? 0;
}

export function findMessage(queries: Queries, roomUid: RoomUid, messageId: string): MessageRow | undefined {
  const row = statementsOf(queries).byId.get({ room_uid: rowsOf(queries, roomUid), message_id: messageId });
  return row && { ...row, room_uid: roomUid };
}

/** Finds an organization's message in these rooms (null: in all), the newest room first. */
export function locateMessage(queries: Queries, orgId: OrgId, roomUids: readonly RoomUid[] | null, messageId: string) {
  const { source, recipients, message_id } = messages;
  return queries
    .select({ room_uid: messageRooms.room_uid, source, recipients })
    .from(messageRooms)
    .innerJoin(messages, eq(messages.room_uid, rowsIn(messageRooms.room_uid)))
    .where(
      and(
        eq(messageRooms.org_id, orgId),
        roomUids === null ? undefined : inArray(messageRooms.room_uid, [...roomUids]),
        eq(message_id, messageId),
      ),
    )
    .orderBy(desc(messageRooms.room_uid))
    .limit(1)
    .get();
}

export function insertMessage(queries: Queries, row: MessageRow): void {
  statementsOf(queries).insertMessage({ ...row, room_uid: rowsOf(queries, row.room_uid) });
}

export function insertDelivery(queries: Queries, row: DeliveryRow): void {
  statementsOf(queries).insertDelivery({ ...row, room_uid: rowsOf(queries, row.room_uid) });
}

export function insertSpread(queries: Queries, room_uid: RoomUid, seq: number, agents: readonly string[]): void {
  queries.insert(messageSpreads).values({ room_uid, seq, agents }).run();
}

/** First seq of the room's spread, if one is in progress. */
export function spreadSeq(queries: Queries, roomUid: RoomUid): number | null {
  const { seq, room_uid } = messageSpreads;
  return queries.select({ seq }).from(messageSpreads).where(eq(room_uid, roomUid)).get()?.seq ?? null;
}

export function getSpread(queries: Queries, roomUid: RoomUid) {
  return queries.select().from(messageSpreads).where(eq(messageSpreads.room_uid, roomUid)).get();
}

/** Bounded by MAX_ROOM_AGENTS agents in each: one row per room with a spread in progress. */
export function listSpreads(queries: Queries): RoomUid[] {
  const rows = queries.select({ room_uid: messageSpreads.room_uid }).from(messageSpreads).all();
  return rows.map(({ room_uid }) => room_uid);
}

export function deleteSpread(queries: Queries, roomUid: RoomUid): void {
  queries.delete(messageSpreads).where(eq(messageSpreads.room_uid, roomUid)).run();
}

/** Removes deliveries of these agents in an inclusive range of seq. */
export function removeDeliveries(
  queries: Queries,
  roomUid: RoomUid,
  [first, last]: readonly [number, number],
  agents: readonly string[],
): void {
  statementsOf(queries).removeDeliveries([rowsOf(queries, roomUid), first, last, JSON.stringify(agents)]);
}

/**
 * Records a reply to a request: its sender no longer waits for this recipient, or for no recipient at all if the request was to a topic. A
 * reply from an agent that is not a recipient changes nothing.
 */
export function noteReply(queries: Queries, { room_uid, source }: MessageRow, requestId: string): void {
  const request = findMessage(queries, room_uid, requestId);
  if (request?.kind !== "request" || !request.recipients.includes(source)) return;
  queries
    .update(deliveries)
    .set({ awaited: false })
    .where(
      and(
        eq(deliveries.room_uid, rowsOf(queries, room_uid)),
        eq(deliveries.seq, request.seq),
        AWAITED,
        request.topic === null ? eq(deliveries.agent_id, source) : undefined,
      ),
    )
    .run();
}

/** Condition for queries about agents: whether the inbox has a message, an undelivered message, or a message of this time or later. */
export function hasOpen(roomUid: SQLWrapper, agentId: SQLWrapper, kind: "any" | "queued" | { since: string }): SQL {
  const { state, expires_at_ms } = deliveries;
  const its = sql`${deliveries.room_uid} = ${rowsIn(roomUid)} AND ${deliveries.agent_id} = ${agentId} AND ${OPEN}`;
  const isLive = sql`(${expires_at_ms} IS NULL OR ${expires_at_ms} > ${wallMs()})`;
  const isOne = kind === "queued" ? and(isLive, eq(state, "queued")) : isLive;
  if (typeof kind === "object") {
    const isIts = and(eq(messages.room_uid, deliveries.room_uid), eq(messages.seq, deliveries.seq));
    const isLater = sql`${messages.created_at} >= ${kind.since}`;
    return sql`EXISTS (SELECT 1 FROM ${deliveries} JOIN ${messages} ON ${isIts} WHERE ${its} AND ${isOne} AND ${isLater})`;
  }
  return sql`EXISTS (SELECT 1 FROM ${deliveries} WHERE ${its} AND ${isOne})`;
}

/** Number of messages in an inbox. */
export function inboxDepth(queries: Queries, roomUid: RoomUid, agentId: string): number {
  return statementsOf(queries).depth([rowsOf(queries, roomUid), agentId])[0]?.depth ?? 0;
}

export function findDelivery(queries: Queries, place: InboxPosition): DeliveryRow | undefined {
  const row = statementsOf(queries).delivery.get(stored(queries, place));
  return row && { ...row, room_uid: place.room_uid };
}

/** The delivery of each recipient, in their order, in one statement: there may be thousands. Null if the delivery was removed. */
export function deliveriesOf(
  queries: Queries,
  { room_uid, seq, recipients }: Pick<MessageRow, "room_uid" | "seq" | "recipients">,
): { agent_id: string; state: DeliveryRow["state"] | null }[] {
  return deliveriesBy(queries)([rowsOf(queries, room_uid), seq, JSON.stringify(recipients)]);
}

const deliveriesBy = preparedBy((queries) =>
  rawQuery<{ agent_id: string; state: DeliveryRow["state"] | null }>(
    queries,
    `SELECT named.value AS agent_id, deliveries.state
     FROM json_each(?3) AS named
     LEFT JOIN deliveries ON room_uid = ?1 AND agent_id = named.value AND seq = ?2
     ORDER BY named.key`,
  ),
);

/** The first response of an agent (`source`) to a message for this agent (`agent_id`). */
export function findReply(
  queries: Queries,
  key: { room_uid: RoomUid; reply_to: string; source: string; agent_id: string },
): MessageRow | undefined {
  const row = statementsOf(queries).reply.get(stored(queries, key));
  return row && { ...row, room_uid: key.room_uid };
}

/** Marks it as handed out; if it needs an ack, it is redelivered at `dueAtMs`. */
export function handOut(queries: Queries, place: InboxPosition, dueAtMs: number): void {
  statementsOf(queries).handOut.run({ ...stored(queries, place), due_at_ms: dueAtMs });
}

export function ackDelivery(queries: Queries, place: InboxPosition): void {
  statementsOf(queries).ack.run(stored(queries, place));
}

/** Whether there is a message up to `seq` that `markRead` would mark. */
export function hasUnread(queries: Queries, place: InboxPosition): boolean {
  return statementsOf(queries).unread.get(stored(queries, place)) !== undefined;
}

/** The recipient has read past `seq`: messages that need no ack leave the inbox. */
export function markRead(queries: Queries, place: InboxPosition): void {
  statementsOf(queries).read.run(stored(queries, place));
}

/** Deliveries due by `nowMs`: to be redelivered, or to expire. */
export function dueDeliveries(queries: Queries, nowMs: number, limit: number): DueDelivery[] {
  return queries
    .select()
    .from(deliveries)
    .where(sql`${deliveries.due_at_ms} IS NOT NULL AND ${deliveries.due_at_ms} <= ${nowMs}`)
    .orderBy(deliveries.due_at_ms)
    .limit(limit)
    .all();
}

/** With the key of its row set, which may belong to no room: before a restore, and after it. */
export type DueDelivery = typeof deliveries.$inferSelect;

export function nextDue(queries: Queries): number | null {
  const first = queries
    .select({ due: deliveries.due_at_ms })
    .from(deliveries)
    .where(sql`${deliveries.due_at_ms} IS NOT NULL`)
    .orderBy(deliveries.due_at_ms)
    .limit(1)
    .get();
  return first?.due ?? null;
}

/** Change of a delivery; `awaited: false` once a reply is no longer possible. */
export type DeliveryChange = Pick<DeliveryRow, "state" | "due_at_ms"> & { awaited?: false };

export function setDelivery(
  queries: Queries,
  { room_uid, agent_id, seq }: Pick<DueDelivery, "room_uid" | "agent_id" | "seq">,
  change: DeliveryChange,
): void {
  const { state, due_at_ms, awaited } = change;
  statementsOf(queries).change([state, due_at_ms, awaited === false ? 1 : 0, room_uid, agent_id, seq]);
}

/** Removes some deliveries of a row set, then, once no delivery remains, some of its messages; false if nothing remains. */
export function removeSome(queries: Queries, rows: RowsKey, limit: number): boolean {
  for (const [table, key] of [
    [deliveries, sql`room_uid, agent_id, seq`],
    [messages, sql`room_uid, seq`],
  ] as const) {
    const some = sql`SELECT ${key} FROM ${table} WHERE room_uid = ${rows} LIMIT ${limit}`;
    if (queries.all(sql`DELETE FROM ${table} WHERE (${key}) IN (${some}) RETURNING seq`).length > 0) return true;
  }
  return false;
}

/** SQL that reads inboxes and a room's messages, page by page. */
import { and, asc, eq, getTableColumns, type SQL, sql } from "drizzle-orm";
import type { RoomUid } from "../../../../shared/ids.ts";
import { wallMs } from "../../../core/clock.ts";
import { preparedBy, type Queries, rawQuery } from "../../../db/client.ts";
import { type RowsKey, rowsOf } from "../../../db/room-rows.ts";
import { OPEN } from "../store.ts";
import { deliveries, type MessageRow, messages } from "../table.ts";

/** A message with its delivery to one recipient. */
export type Delivered = MessageRow & { attempts: number; delivery_state: string };
/** A message of an inbox, or of a room. */
export type Row = MessageRow & Partial<Pick<Delivered, "attempts" | "delivery_state">>;
/** A message without its payload. */
export type Head = Pick<MessageRow, "seq" | "topic" | "kind" | "source" | "size_bytes">;

type Stored = Omit<Row, "room_uid"> & { room_uid: RowsKey };

interface Inbox {
  room_uid: RoomUid;
  agent_id: string;
}

/**
 * Selects messages: of a room, or of an inbox the open ones, the read ones too, or those up to a position that are redelivered because they
 * were not acked.
 */
export type Whose =
  | { is: "room"; room_uid: RoomUid }
  | (Inbox & { is: "open" | "all" })
  | (Inbox & { is: "again"; until: number });

/** Messages in order of seq, after a position. */
export interface Messages {
  heads(after: number, limit: number): Head[];
  rows(after: number, limit: number): Row[];
}

/** Raw SQL: thousands of waits may read heads, and the query builder takes longer than SQLite. */
const HEADS = `SELECT messages.seq, topic, kind, source, size_bytes FROM`;
const INBOX = `${HEADS} deliveries JOIN messages ON messages.room_uid = deliveries.room_uid AND messages.seq = deliveries.seq
  WHERE deliveries.room_uid = ?1 AND deliveries.agent_id = ?2 AND deliveries.seq > ?3
    AND (deliveries.expires_at_ms IS NULL OR deliveries.expires_at_ms > ?4)`;
const ORDER = "ORDER BY deliveries.seq LIMIT ?5";

const headsOf = preparedBy((queries) => ({
  room: rawQuery<Head>(queries, `${HEADS} messages WHERE room_uid = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3`),
  open: rawQuery<Head>(queries, `${INBOX} AND deliveries.state IN ('queued', 'delivered') ${ORDER}`),
  all: rawQuery<Head>(queries, `${INBOX} AND deliveries.state IN ('queued', 'delivered', 'read') ${ORDER}`),
  again: rawQuery<Head>(
    queries,
    `${INBOX} AND deliveries.state = 'queued' AND deliveries.attempts > 0 AND deliveries.seq <= ?6 ${ORDER}`,
  ),
}));

function headsBy(queries: Queries, scope: Whose, after: number, limit: number): Head[] {
  const heads = headsOf(queries);
  const key = rowsOf(queries, scope.room_uid);
  if (scope.is === "room") return heads.room([key, after, limit]);
  const values = [key, scope.agent_id, after, wallMs(), limit];
  return scope.is === "again" ? heads.again([...values, scope.until]) : heads[scope.is](values);
}

function prepare(queries: Queries) {
  const whole = { ...getTableColumns(messages), attempts: deliveries.attempts, delivery_state: deliveries.state };
  const same = and(eq(messages.room_uid, deliveries.room_uid), eq(messages.seq, deliveries.seq));
  const mine = and(
    eq(deliveries.room_uid, sql.placeholder("room_uid")),
    eq(deliveries.agent_id, sql.placeholder("agent_id")),
    sql`${deliveries.seq} > ${sql.placeholder("after")}`,
    sql`(${deliveries.expires_at_ms} IS NULL OR ${deliveries.expires_at_ms} > ${sql.placeholder("now")})`,
  );
  const limit = sql.placeholder("limit");
  const ofInbox = (condition: SQL | undefined) => {
    const rows = queries.select(whole).from(deliveries).innerJoin(messages, same).$dynamic();
    return rows.where(and(mine, condition)).orderBy(asc(deliveries.seq)).limit(limit).prepare();
  };
  const ofRoom = and(
    eq(messages.room_uid, sql.placeholder("room_uid")),
    sql`${messages.seq} > ${sql.placeholder("after")}`,
  );
  return {
    open: ofInbox(OPEN),
    // But acked ones.
    all: ofInbox(sql`${deliveries.state} IN ('queued', 'delivered', 'read')`),
    again: ofInbox(
      and(
        OPEN,
        sql`${deliveries.seq} <= ${sql.placeholder("until")} AND ${deliveries.state} = 'queued' AND ${deliveries.attempts} > 0`,
      ),
    ),
    room: queries.select().from(messages).where(ofRoom).orderBy(asc(messages.seq)).limit(limit).prepare(),
  };
}

const statementsOf = preparedBy(prepare);

export function messagesOf(queries: Queries, scope: Whose): Messages {
  const rows: { all(values: Record<string, unknown>): Stored[] } = statementsOf(queries)[scope.is];
  return {
    heads: (after, limit) => headsBy(queries, scope, after, limit),
    rows: (after, limit) => {
      const found = rows.all({ ...scope, room_uid: rowsOf(queries, scope.room_uid), after, limit, now: wallMs() });
      return found.map((row) => ({ ...row, room_uid: scope.room_uid }));
    },
  };
}

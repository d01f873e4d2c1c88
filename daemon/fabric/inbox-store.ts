/** Owns the SQL that reads inboxes and a room's messages, page by page. */
import { and, asc, eq, getTableColumns, sql } from "drizzle-orm";
import type { RoomUid } from "../../shared/ids.ts";
import { preparedBy, type Queries } from "../db/client.ts";
import { OPEN } from "./store.ts";
import { deliveries, type MessageRow, messages } from "./table.ts";

/** A message as one recipient has it. */
export type Delivered = MessageRow & { attempts: number; delivery_state: string };

export interface Page {
  room_uid: RoomUid;
  agent_id: string;
  /** Exclusive. */
  after: number;
  limit: number;
}

function prepare(queries: Queries) {
  const columns = {
    ...getTableColumns(messages),
    attempts: deliveries.attempts,
    delivery_state: deliveries.state,
  };
  const same = and(eq(messages.room_uid, deliveries.room_uid), eq(messages.seq, deliveries.seq));
  const mine = and(
    eq(deliveries.room_uid, sql.placeholder("room_uid")),
    eq(deliveries.agent_id, sql.placeholder("agent_id")),
  );
  const after = sql.placeholder("after");
  const limit = sql.placeholder("limit");
  const from = () => queries.select(columns).from(deliveries).innerJoin(messages, same).$dynamic();
  const live = sql`(${deliveries.expires_at_ms} IS NULL OR ${deliveries.expires_at_ms} > ${sql.placeholder("now")})`;
  return {
    open: from()
      .where(and(mine, OPEN, sql`${deliveries.seq} > ${after}`, live))
      .orderBy(asc(deliveries.seq))
      .limit(limit)
      .prepare(),
    from: from()
      .where(
        and(mine, sql`${deliveries.seq} > ${after}`, sql`${deliveries.state} IN ('queued', 'delivered', 'read')`, live),
      )
      .orderBy(asc(deliveries.seq))
      .limit(limit)
      .prepare(),
    again: from()
      .where(
        and(
          mine,
          OPEN,
          sql`${deliveries.seq} > ${after} AND ${deliveries.seq} <= ${sql.placeholder("until")}`,
          sql`${deliveries.state} = 'queued' AND ${deliveries.attempts} > 0`,
          live,
        ),
      )
      .orderBy(asc(deliveries.seq))
      .limit(limit)
      .prepare(),
    room: queries
      .select()
      .from(messages)
      .where(and(eq(messages.room_uid, sql.placeholder("room_uid")), sql`${messages.seq} > ${after}`))
      .orderBy(asc(messages.seq))
      .limit(limit)
      .prepare(),
  };
}

const statementsOf = preparedBy(prepare);

/** What is in an inbox. */
export function openMessages(queries: Queries, page: Page): Delivered[] {
  return statementsOf(queries).open.all({ ...page, now: Date.now() });
}

/** What a recipient got after a place, whether it has read on since or not; not what it has acked. */
export function messagesFrom(queries: Queries, page: Page): Delivered[] {
  return statementsOf(queries).from.all({ ...page, now: Date.now() });
}

/** What comes again because nobody acked it, up to a place. */
export function comingAgain(queries: Queries, page: Page & { until: number }): Delivered[] {
  return statementsOf(queries).again.all({ ...page, now: Date.now() });
}

export function roomMessages(queries: Queries, page: Omit<Page, "agent_id">): MessageRow[] {
  return statementsOf(queries).room.all({ ...page });
}

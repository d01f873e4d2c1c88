/** The tables of messages and of their deliveries, as queries see them. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { DeliveryState, MessageKind } from "../../../shared/api/fabric.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { RowsKey } from "../../db/room-rows.ts";

export const messages = sqliteTable(
  "messages",
  {
    /** Key of the room's rows. */
    room_uid: text().$type<RowsKey>().notNull(),
    seq: integer().notNull(),
    message_id: text().notNull(),
    source: text().notNull(),
    destination: text(),
    destinations: text({ mode: "json" }).$type<string[]>(),
    topic: text(),
    kind: text().$type<MessageKind>().notNull(),
    /** JSON text of the response; null if the payload is bytes. */
    payload: text(),
    payload_b64: text(),
    size_bytes: integer().notNull(),
    headers: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
    reply_to: text(),
    ack_required: integer({ mode: "boolean" }).notNull(),
    recipients: text({ mode: "json" }).$type<string[]>().notNull(),
    fingerprint: text().notNull(),
    created_at: text().notNull(),
    expires_at: text(),
  },
  (table) => [primaryKey({ columns: [table.room_uid, table.seq] })],
);

export const deliveries = sqliteTable(
  "deliveries",
  {
    /** Key of the room's rows. */
    room_uid: text().$type<RowsKey>().notNull(),
    agent_id: text().notNull(),
    seq: integer().notNull(),
    state: text().$type<DeliveryState>().notNull(),
    attempts: integer().notNull(),
    ack_required: integer({ mode: "boolean" }).notNull(),
    due_at_ms: integer(),
    expires_at_ms: integer(),
    /** Whether the sender still waits for this recipient's reply. */
    awaited: integer({ mode: "boolean" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.room_uid, table.agent_id, table.seq] })],
);

/** Bytes of the messages of a room. */
export const messageRooms = sqliteTable("message_rooms", {
  room_uid: text().$type<RoomUid>().primaryKey(),
  org_id: text().$type<OrgId>().notNull(),
  bytes: integer().notNull(),
  gone_seq: integer().notNull(),
  /** The room's sequence continues after this number, whatever rows it has. */
  last_seq: integer().notNull().default(0),
  /** When it was last restored or made from a checkpoint; 0: never. */
  branched_at_ms: integer().notNull().default(0),
});

/** Messages whose deliveries are being written before them. */
export const messageSpreads = sqliteTable("message_spreads", {
  room_uid: text().$type<RoomUid>().primaryKey(),
  /** Sequence number of the first message of the spread. */
  seq: integer().notNull(),
  agents: text({ mode: "json" }).$type<readonly string[]>().notNull(),
});

/** A row with the uid of its room in place of the key. */
type OfRoom<Row> = Omit<Row, "room_uid"> & { room_uid: RoomUid };
export type MessageRow = OfRoom<typeof messages.$inferSelect>;
export type DeliveryRow = OfRoom<typeof deliveries.$inferSelect>;

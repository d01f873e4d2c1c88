/**
 * Quota of bytes for the messages of an organization. The size of a message is fixed when it is stored, and can be computed again from its
 * row. Sums are cached by organization, and written by room once for all messages of a commit.
 */
import { eq, sql } from "drizzle-orm";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import type { RoomTarget } from "../../../core/call/room-target.ts";
import { wallMs } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { preparedBy, type Queries, rawQuery, rawStatement } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { TransactionMap } from "../../../db/transaction-map.ts";
import { type MessageRow, messageRooms } from "../table.ts";

/** Bytes of a message row and its index entries. */
const ROW_BYTES = 512;
/** Bytes of a delivery and its inbox entry; BYTES_OF_ROW counts the recipient's name three times in addition. */
const DELIVERY_BYTES = 120;

type Sized = Pick<MessageRow, "payload" | "payload_b64" | "size_bytes" | "headers" | "destinations" | "recipients">;

/** Bytes that a message takes, with its deliveries. */
export function bytesOf({ payload, payload_b64, size_bytes, headers, destinations, recipients }: Sized): number {
  const content = payload_b64?.length ?? (payload === null ? 0 : size_bytes);
  const lists = jsonBytes(destinations) + 3 * jsonBytes(recipients);
  return ROW_BYTES + content + jsonBytes(headers) + lists + DELIVERY_BYTES * recipients.length;
}

const jsonBytes = (value: object | null): number => Buffer.byteLength(JSON.stringify(value));

/** The same sum as SQL, for a row of the table. */
export const BYTES_OF_ROW = `(${ROW_BYTES} + ifnull(octet_length(payload), 0) + ifnull(octet_length(payload_b64), 0)
  + octet_length(headers) + octet_length(ifnull(destinations, 'null')) + 3 * octet_length(recipients)
  + ${DELIVERY_BYTES} * json_array_length(recipients))`;

const statementsOf = preparedBy((queries: Queries) => ({
  sum: rawQuery<{ bytes: number }>(
    queries,
    "SELECT ifnull(sum(bytes), 0) AS bytes FROM message_rooms WHERE org_id = ?",
  ),
  ofRoom: rawQuery<{ bytes: number }>(queries, "SELECT bytes FROM message_rooms WHERE room_uid = ?"),
  grow: rawStatement(
    queries,
    `INSERT INTO message_rooms (room_uid, org_id, bytes, gone_seq) VALUES (?, ?, ?, 0)
     ON CONFLICT (room_uid) DO UPDATE SET bytes = bytes + excluded.bytes`,
  ),
  branchedAt: rawQuery<{ branched_at_ms: number }>(
    queries,
    "SELECT branched_at_ms FROM message_rooms WHERE room_uid = ?",
  ),
}));

export type Holder = Pick<RoomTarget, "org_id" | "room_uid">;

export class Budget {
  readonly #database: Database;
  /** Maximum bytes of an organization; 0: unlimited. */
  readonly most: number;
  /** Bytes per organization, cached on first use. */
  readonly #taken: TransactionMap<OrgId, number>;
  /** Changes within the current commit. */
  readonly #grown: (Holder & { bytes: number })[] = [];

  constructor(database: Database, most: number) {
    this.#database = database;
    this.most = most;
    this.#taken = new TransactionMap(database);
    database.beforeCommit((queries) => this.#write(queries));
  }

  /** Within the transaction that stores the message. Throws quota_exceeded. */
  take(queries: Queries, holder: Holder, bytes: number): void {
    this.requireSpace(queries, holder.org_id, bytes);
    this.#change(queries, holder, bytes);
  }

  /** Like `take`, for bytes that were checked before or can no longer be refused: the sum may exceed the organization's quota. */
  add(queries: Queries, holder: Holder, bytes: number): void {
    this.#change(queries, holder, bytes);
  }

  /** Throws quota_exceeded. */
  requireSpace(queries: Queries, orgId: OrgId, bytes: number): void {
    const used = this.taken(queries, orgId);
    if (this.most > 0 && used + bytes > this.most) throw exceeded(used, this.most);
  }

  /** Within the transaction that removes the messages. */
  giveBack(queries: Queries, holder: Holder, bytes: number): void {
    this.#change(queries, holder, -bytes);
  }

  /** Within a transaction: the room and all of its messages are removed. */
  forget(queries: Queries, roomUid: RoomUid): void {
    const row = queries.select().from(messageRooms).where(eq(messageRooms.room_uid, roomUid)).get();
    if (!row) return;
    this.#taken.set(row.org_id, this.taken(queries, row.org_id) - row.bytes);
    queries.delete(messageRooms).where(eq(messageRooms.room_uid, roomUid)).run();
  }

  /** Bytes that a room's messages take, also in the middle of a transaction. */
  ofRoom(queries: Queries, roomUid: RoomUid): number {
    const stored = statementsOf(queries).ofRoom([roomUid])[0]?.bytes ?? 0;
    return this.#grown.reduce((sum, { room_uid, bytes }) => (room_uid === roomUid ? sum + bytes : sum), stored);
  }

  /** Bytes that an organization's messages take. */
  taken(queries: Queries, orgId: OrgId): number {
    const known = this.#taken.get(orgId);
    if (known !== undefined) return known;
    const bytes = statementsOf(queries).sum([orgId])[0]?.bytes ?? 0;
    this.#taken.set(orgId, bytes);
    return bytes;
  }

  #change(queries: Queries, { org_id, room_uid }: Holder, bytes: number): void {
    this.#taken.set(org_id, this.taken(queries, org_id) + bytes);
    this.#grown.push({ org_id, room_uid, bytes });
    this.#database.undo(this.#ungrow);
  }

  /** Undo in reverse order: removes the last change; does nothing once the changes were written. */
  readonly #ungrow = () => void this.#grown.pop();

  #write(queries: Queries): void {
    if (this.#grown.length === 0) return;
    const rooms = new Map<RoomUid, Holder & { bytes: number }>();
    for (const grown of this.#grown.splice(0)) {
      const sum = rooms.get(grown.room_uid);
      if (sum) sum.bytes += grown.bytes;
      else rooms.set(grown.room_uid, grown);
    }
    for (const { room_uid, org_id, bytes } of rooms.values()) statementsOf(queries).grow([room_uid, org_id, bytes]);
  }
}

function exceeded(used: number, cap: number): ServiceError {
  return new ServiceError("quota_exceeded", {
    detail: `The organization's messages take ${used} bytes of ${cap}, and all are unread or too new to be deleted; this message was not stored.`,
    details: { limit: "messages", used, cap },
    hint: "Let agents read or ack their inboxes, destroy rooms, or wait a few minutes.",
  });
}

/** An organization's rooms that have messages, the oldest first. */
export function roomsWithMessages(queries: Queries, orgId: OrgId): RoomUid[] {
  const { org_id, room_uid } = messageRooms;
  const rows = queries.select({ room_uid }).from(messageRooms).where(eq(org_id, orgId)).orderBy(room_uid).all();
  return rows.map((row) => row.room_uid);
}

/** The last message of a room that was removed to free space; 0 if none was. */
export function goneUpTo(queries: Queries, roomUid: RoomUid): number {
  return goneOf(queries)([roomUid])[0]?.seq ?? 0;
}

const goneOf = preparedBy((queries) =>
  rawQuery<{ seq: number }>(queries, "SELECT gone_seq AS seq FROM message_rooms WHERE room_uid = ?"),
);

/** Time at which a room was last restored or made from a checkpoint, unique per room. 0: never. */
export function branchedAt(queries: Queries, roomUid: RoomUid): number {
  return statementsOf(queries).branchedAt([roomUid])[0]?.branched_at_ms ?? 0;
}

/** Within the transaction that restores a room or fills it; the bytes of its messages are reported to the budget separately. */
export function markBranched(
  queries: Queries,
  { org_id, room_uid }: Holder,
  at: { gone_seq: number; last_seq: number },
): void {
  const branched_at_ms = Math.max(wallMs(), branchedAt(queries, room_uid) + 1);
  const set = { ...at, branched_at_ms };
  queries
    .insert(messageRooms)
    .values({ room_uid, org_id, bytes: 0, ...set })
    .onConflictDoUpdate({ target: messageRooms.room_uid, set })
    .run();
}

/** Within the transaction that removes messages up to this seq. */
export function markGone(queries: Queries, roomUid: RoomUid, seq: number): void {
  const gone_seq = sql`max(${messageRooms.gone_seq}, ${seq})`;
  queries.update(messageRooms).set({ gone_seq }).where(eq(messageRooms.room_uid, roomUid)).run();
}

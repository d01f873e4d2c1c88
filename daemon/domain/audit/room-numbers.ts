/**
 * Numbers of a room's events: those of its records in the chain, until the room moves. Another host has a chain with other numbers, so
 * there they continue after the room's last number, and its newest events come along for readers that have not received them.
 *
 *     number = id + (seq - stay.seq)   for a record after `seq` of its stay; before the first stay they are the chain's own
 */
import { and, asc, desc, eq, gt, lt, lte, max } from "drizzle-orm";
import type { Steps } from "../../core/loop/steps.ts";
import type { Queries } from "../../db/client.ts";
import { chainHead } from "./chain/chain-head.ts";
import { chainKey } from "./chain/chain-key.ts";
import { closedUpTo } from "./days/parts.ts";
import { readableRecords } from "./reading/scan.ts";
import { type Stay, staysOf } from "./room-stays.ts";
import { chainStart, listAudit } from "./rows.ts";
import { type AuditRow, roomFormerEvents, roomStays } from "./table.ts";

/** Limit on how far a reader may be behind when a room moves. */
const MAX_EVENTS = 1000;
const MAX_CHARACTERS = 4 * 1024 ** 2;
/** Stays of one room on one host. If a room returns more often, lists show wrong numbers for its oldest events. */
const MAX_STAYS = 100;

interface Room {
  org_id: string;
  room_uid: string;
}

/** Events that move with a room. */
export interface MovedEvents {
  /** Number of the room's last event. */
  last: number;
  /** The events after this number are included. */
  since: number;
  rows: AuditRow[];
}

interface Range {
  after: number;
  last?: number | undefined;
  limit: number;
}

export class RoomNumbers {
  readonly #queries: Queries;
  readonly #room: Room;
  readonly #stays: readonly Stay[];

  constructor(queries: Queries, room: Room) {
    this.#queries = queries;
    this.#room = room;
    this.#stays = staysOf(queries, room.room_uid);
  }

  /** The number that the chain's newest record has, or would have if it were the room's. */
  head(): number {
    const head = chainHead(this.#queries, chainKey(this.#room.org_id))?.seq ?? 0;
    const { seq, id } = this.#stay;
    return Math.max(id, id + head - seq);
  }

  /** Events after this number are retained. */
  keptAfter(): number {
    const purged = chainStart(this.#queries, chainKey(this.#room.org_id))?.seq ?? 0;
    const { seq, id, since } = this.#stay;
    return purged > seq ? id + purged - seq : since;
  }

  /** The room's events in order, with their numbers as seq: those of former hosts that moved with the room, then those of this host. */
  read({ after, last, limit }: Range): AuditRow[] {
    const { seq, id } = this.#stay;
    const former = after < id ? this.#former({ after, last, limit }) : [];
    // Records of this host may be in closed days, which readers read elsewhere.
    if (former.length > 0 || (last !== undefined && last <= id)) return former;
    const own = listAudit(this.#queries, {
      ...this.#room,
      order: "asc",
      after: Math.max(after, id) - id + seq,
      last: last === undefined ? undefined : last - id + seq,
      limit,
    });
    return own.map((row) => this.numbered(row));
  }

  /** Range of seqs in the chain that closed days may have after a number; null if the next records are not in closed days. */
  closedAfter(after: number): { after: number; last: number } | null {
    const { seq, id } = this.#stay;
    const last = closedUpTo(this.#queries, chainKey(this.#room.org_id));
    const from = Math.max(after, id) - id + seq;
    if (from >= last || (after < id && this.#former({ after, limit: 1 }).length > 0)) return null;
    return { after: from, last };
  }

  /** A record of the current stay, with its number as seq. */
  numbered(row: AuditRow): AuditRow {
    return { ...row, seq: this.numberOf(row.seq) };
  }

  /** Number of a record of the current stay. */
  numberOf(ofChain: number): number {
    const { seq, id } = this.#stay;
    return id + ofChain - seq;
  }

  /** Events that move with the room when it leaves, without those of lost closed days; a step for each stretch of the chain. */
  *taken(): Steps<MovedEvents> {
    const last = this.head();
    const { seq } = this.#stay;
    const { org_id, room_uid } = this.#room;
    const range = { org_id, room_uid, order: "desc", last: seq + 1 } as const;
    const records = yield* readableRecords(this.#queries, range, MAX_EVENTS);
    const own = records.map((row) => this.numbered(row));
    const newest = [...own, ...this.#newestFormer(MAX_EVENTS + 1 - own.length)];
    const rows = newest.slice(0, fitting(newest));
    const beyond = newest[rows.length];
    return { last, since: Math.max(this.keptAfter(), beyond?.seq ?? 0), rows: rows.reverse() };
  }

  get #stay(): Stay {
    return this.#stays.at(-1) ?? { seq: 0, id: 0, since: 0 };
  }

  #former({ after, last, limit }: Range): AuditRow[] {
    const { room_uid, id, record } = roomFormerEvents;
    const upTo = last === undefined ? undefined : lte(id, last);
    const rows = this.#queries
      .select({ record })
      .from(roomFormerEvents)
      .where(and(eq(room_uid, this.#room.room_uid), gt(id, after), upTo))
      .orderBy(asc(id))
      .limit(limit)
      .all();
    return rows.map((row) => row.record);
  }

  #newestFormer(limit: number): AuditRow[] {
    const { room_uid, id, record } = roomFormerEvents;
    const isOfRoom = eq(room_uid, this.#room.room_uid);
    const rows = this.#queries.select({ record }).from(roomFormerEvents).where(isOfRoom).orderBy(desc(id));
    return rows
      .limit(limit)
      .all()
      .map((row) => row.record);
  }
}

/** Number of rows that fit the limits on events and characters. */
function fitting(rows: readonly AuditRow[]): number {
  let left = MAX_CHARACTERS;
  const beyond = rows.findIndex((row, index) => {
    left -= JSON.stringify(row).length;
    return index >= MAX_EVENTS || left < 0;
  });
  return beyond === -1 ? rows.length : beyond;
}

/** Stores the events of a room that has arrived; this host has recorded nothing of it yet. Within a transaction. */
export function giveEvents(queries: Queries, room: Room, { last, since, rows }: MovedEvents): void {
  const { room_uid } = room;
  queries.delete(roomFormerEvents).where(eq(roomFormerEvents.room_uid, room_uid)).run();
  for (const row of rows.slice(-MAX_EVENTS)) {
    queries.insert(roomFormerEvents).values({ room_uid, id: row.seq, at: row.at, record: row }).run();
  }
  const seq = chainHead(queries, chainKey(room.org_id))?.seq ?? 0;
  queries
    .insert(roomStays)
    .values({ room_uid, seq, id: last, since })
    .onConflictDoUpdate({ target: [roomStays.room_uid, roomStays.seq], set: { id: last, since } })
    .run();
  const [oldest] = queries
    .select({ seq: roomStays.seq })
    .from(roomStays)
    .where(eq(roomStays.room_uid, room_uid))
    .orderBy(desc(roomStays.seq))
    .limit(1)
    .offset(MAX_STAYS)
    .all();
  if (oldest)
    queries
      .delete(roomStays)
      .where(and(eq(roomStays.room_uid, room_uid), lte(roomStays.seq, oldest.seq)))
      .run();
}

/** The room belongs to another host: the events that came with it are deleted here, and exist there. Within a transaction. */
export function forgetFormerEvents(queries: Queries, roomUid: string): void {
  queries.delete(roomFormerEvents).where(eq(roomFormerEvents.room_uid, roomUid)).run();
}

/** Deletes the numbers of a room that is removed. Within a transaction. */
export function forgetNumbers(queries: Queries, roomUid: string): void {
  forgetFormerEvents(queries, roomUid);
  queries.delete(roomStays).where(eq(roomStays.room_uid, roomUid)).run();
}

/**
 * Purges events that came with rooms, with the retention of records of this host; up to `limit` per call. Within a transaction; returns the
 * number of deleted events.
 */
export function purgeFormerEvents(queries: Queries, before: string, limit: number): number {
  const { room_uid, id, at } = roomFormerEvents;
  const old = queries.select({ room_uid, id }).from(roomFormerEvents).where(lt(at, before)).limit(limit).all();
  for (const each of old) {
    const isOfRoom = eq(roomStays.room_uid, each.room_uid);
    const newest = queries
      .select({ seq: max(roomStays.seq) })
      .from(roomStays)
      .where(isOfRoom);
    queries
      .delete(roomFormerEvents)
      .where(and(eq(room_uid, each.room_uid), eq(id, each.id)))
      .run();
    queries
      .update(roomStays)
      .set({ since: each.id })
      .where(and(isOfRoom, eq(roomStays.seq, newest), lt(roomStays.since, each.id)))
      .run();
  }
  return old.length;
}

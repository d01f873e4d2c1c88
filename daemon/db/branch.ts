/**
 * A noun's part in branching a room: its rows in a checkpoint, and their insertion into another room, or back into their own. A state is
 * plain JSON. It names its columns, so that a later roomd recognizes them and gives new ones their defaults.
 *
 *   take      reads, some rows in each step; all nouns at one moment, while nothing of the room runs
 *   stage     writes the rows of a future room, some in each commit: a state of 512 MiB takes seconds
 *   put       in the commit that makes that room: the rest, and its state in memory
 *   replace   rolls the room itself back: its current rows are deleted
 *   requireSpace  before a replace, which must not fail: checks that there is space; replace itself does not check again
 *   wake      after the commit of put or replace: waiters look again, and timers are set again
 *   accept    validates untrusted input against the states that take could have returned
 *
 * put and replace may run twice, and be rolled back, as every write. The caller of stage removes the rows if the room is not made.
 */
import { getTableColumns, getTableName } from "drizzle-orm";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import { monotonicMs } from "../core/clock.ts";
import type { Steps } from "../core/loop/index.ts";
import { ServiceError } from "../core/service-error.ts";
import { type Queries, rawQuery, rawStatement, rawValues, type Values } from "./client.ts";
import type { Database } from "./transact.ts";

/** A room that is filled or rolled back. */
export interface BranchedRoom {
  room_uid: RoomUid;
  org_id: OrgId;
  /** How long its time was suspended: a running deadline is later by this. */
  pausedMs: number;
}

export interface Branch<State> {
  /** Throws quota_exceeded if there is more than a checkpoint can have. */
  take(queries: Queries, roomUid: RoomUid): Steps<State>;
  /** Nothing reads the room yet. Rejects with the signal's reason. */
  stage(state: State, room: BranchedRoom, over: AbortSignal): Promise<void>;
  put(queries: Queries, state: State, room: BranchedRoom): void;
  /** Rooms with staged rows that were not made: the previous daemon ended in between. */
  strays(queries: Queries): RoomUid[];
  replace(queries: Queries, state: State, room: BranchedRoom): void;
  /** Throws quota_exceeded. */
  requireSpace(queries: Queries, state: State, room: BranchedRoom): void;
  wake(room: BranchedRoom): Promise<void>;
  /** Throws Foreign (untrusted-rows.ts), and quota_exceeded if that is known already. */
  accept(given: unknown, origin: Origin): Promise<State>;
}

/** Origin of untrusted state. */
export interface Origin {
  /** Time of the checkpoint, according to the file. */
  takenAtMs: number;
  /** Organization that will own it; null: not yet known. */
  org_id: OrgId | null;
}

/** Rows of one owner, without the owner column. */
export interface Rows {
  columns: string[];
  rows: Values[];
}

/** A state is in memory as a whole, and once more while it is written. */
const MAX_BYTES = 512 * 1024 ** 2;
/** Approximate size of a row in addition to its texts. */
const ROW_BYTES = 64;
/** Rows of a step: up to 4 MiB. */
const ROWS_AT_ONCE = 64;
/** Time in which a commit inserts staged rows: the event loop waits for it. */
const STAGE_MS = 2;

type Value = Values[number];

/** The rows of a room, in order of the primary key. Throws quota_exceeded. */
export function* takeRows(queries: Queries, table: SQLiteTable, roomUid: RoomUid): Steps<Rows> {
  const name = getTableName(table);
  const columns = columnsOf(table);
  const { primaryKeys, columns: all } = getTableConfig(table);
  const own = [...primaryKeys.flatMap((key) => key.columns), ...all.filter((column) => column.primary)];
  const order = own.map((column) => column.name).filter((column) => column !== "room_uid");
  const places = order.map((column) => columns.indexOf(column));
  const select = (after: string) =>
    rawValues(
      queries,
      `SELECT ${columns.join()} FROM ${name} WHERE room_uid = ? ${after} ORDER BY ${order.join()} LIMIT ${ROWS_AT_ONCE}`,
    );
  const next = select(`AND (${order.join()}) > (${order.map(() => "?").join()})`);
  const rows: Values[] = [];
  let bytes = 0;
  for (let read = select("")([roomUid]); ; ) {
    for (const row of read) {
      rows.push(row);
      bytes += row.reduce<number>((sum, value) => sum + bytesOf(value), ROW_BYTES);
    }
    if (bytes > MAX_BYTES) throw tooMuch(name, bytes);
    const last = read.at(-1);
    if (!last || read.length < ROWS_AT_ONCE) return { columns, rows };
    yield;
    read = next([roomUid, ...places.map((place) => last[place] ?? null)]);
  }
}

const bytesOf = (value: Value): number => (value === null ? 0 : Buffer.byteLength(String(value)));

/** Converters of a column's values for this room. */
type Changes = Record<string, (value: Value) => Value>;

export function putRows(
  queries: Queries,
  table: SQLiteTable,
  roomUid: RoomUid,
  { columns, rows }: Rows,
  changes: Changes = {},
): void {
  const insert = inserterOf(queries, table, roomUid, columns, changes);
  for (const row of rows) insert(row);
}

/** Inserts rows of a room that is not made yet, some in each commit. Rejects with the signal's reason. */
export async function stageRows(
  { database, over }: { database: Pick<Database, "commit">; over: AbortSignal },
  table: SQLiteTable,
  roomUid: RoomUid,
  { columns, rows }: Rows,
  changes: Changes = {},
): Promise<void> {
  for (let at = 0; at < rows.length; ) {
    const from = at;
    at = await database.commit((queries) => {
      over.throwIfAborted();
      const insert = inserterOf(queries, table, roomUid, columns, changes);
      const until = monotonicMs() + STAGE_MS;
      let next = from;
      do insert(rows[next++] ?? []);
      while (next < rows.length && monotonicMs() < until);
      return next;
    }, false);
  }
}

/** Rooms that the table has rows of, and that were not made. */
export function straysIn(queries: Queries, table: SQLiteTable): RoomUid[] {
  const name = getTableName(table);
  const next = (after: string) => `(SELECT min(room_uid) FROM ${name} WHERE room_uid > ${after})`;
  const read = rawQuery<{ room_uid: RoomUid }>(
    queries,
    `WITH RECURSIVE found (room_uid) AS (
       SELECT ${next("''")} UNION ALL SELECT ${next("found.room_uid")} FROM found WHERE found.room_uid IS NOT NULL
     )
     SELECT room_uid FROM found WHERE room_uid IS NOT NULL AND room_uid NOT IN (SELECT room_uid FROM rooms)`,
  );
  return read([]).map(({ room_uid }) => room_uid);
}

function inserterOf(
  queries: Queries,
  table: SQLiteTable,
  roomUid: RoomUid,
  columns: readonly string[],
  changes: Changes,
): (row: Values) => void {
  const name = getTableName(table);
  const known = columnsOf(table);
  const stranger = columns.find((column) => !known.includes(column));
  if (stranger !== undefined) throw new Error(`this roomd's table ${name} has no column ${stranger}`);
  const changeOf = columns.map((column) => changes[column]);
  const places = ["room_uid", ...columns].map(() => "?").join();
  const insert = rawStatement(queries, `INSERT INTO ${name} (room_uid, ${columns.join()}) VALUES (${places})`);
  return (row) => insert([roomUid, ...row.map((value, at) => changeOf[at]?.(value) ?? value)]);
}

export function removeRows(queries: Queries, table: SQLiteTable, roomUid: RoomUid): void {
  rawStatement(queries, `DELETE FROM ${getTableName(table)} WHERE room_uid = ?`)([roomUid]);
}

/** One column's values. */
export function valuesIn({ columns, rows }: Rows, column: string): Value[] {
  const at = columns.indexOf(column);
  return rows.map((row) => row[at] ?? null);
}

function columnsOf(table: SQLiteTable): string[] {
  return Object.values(getTableColumns(table))
    .map((column) => column.name)
    .filter((name) => name !== "room_uid");
}

function tooMuch(name: string, bytes: number): ServiceError {
  return new ServiceError("quota_exceeded", {
    detail: `The room's ${name} take ${bytes} bytes or more; a checkpoint can have ${MAX_BYTES} of them.`,
    details: { limit: name, used: bytes, cap: MAX_BYTES },
  });
}

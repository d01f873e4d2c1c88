/**
 * A noun's part in branching a room: its rows in a checkpoint, and their insertion into another room, or back into their own. A state is
 * plain JSON. It names its columns, so that a later roomd recognizes them and gives new ones their defaults.
 *
 *   take      reads, some rows in each step; all nouns at one moment, while nothing of the room runs
 *   stage     writes rows that no room has yet, some in each commit: a state of 512 MiB takes seconds
 *   put       in the commit that makes their room: the rest, and its state in memory
 *   replace   in the commit that exchanges a room's rows for them: the same, and nothing refuses it; messages come first, which need the
 *             room's former rows
 *   drop      removes rows that no room has, some in each commit
 *   wake      after the commit of put or replace: waiters look again, and timers are set again
 *   accept    validates untrusted input against the states that take could have returned
 *
 * put and replace may run twice, and be rolled back, as every write. The caller of stage drops the rows if no room gets them.
 */
import { getTableColumns, getTableName } from "drizzle-orm";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import { monotonicMs } from "../core/clock.ts";
import type { Steps } from "../core/loop/index.ts";
import { ServiceError } from "../core/service-error.ts";
import { type Queries, rawQuery, rawStatement, rawValues, type Values } from "./client.ts";
import type { RowsKey } from "./room-rows.ts";
import type { Database } from "./transact.ts";

/** A room that is filled or rolled back. */
export interface BranchedRoom {
  room_uid: RoomUid;
  org_id: OrgId;
  /** How long its time was suspended: a running deadline is later by this. */
  pausedMs: number;
  /** Key of the rows that it gets. */
  rows: RowsKey;
}

export interface Staging {
  /** Aborts it. */
  over: AbortSignal;
  /** The rows are for another room, which has no sandboxes that are gone. */
  isOther: boolean;
  /** Throws quota_exceeded if the organization has no space for them; else they are accepted in any case. */
  requiresSpace: boolean;
}

export interface Branch<State> {
  /** Throws quota_exceeded if there is more than a checkpoint can have. */
  take(queries: Queries, roomUid: RoomUid): Steps<State>;
  /** Rejects with the signal's reason. */
  stage(state: State, room: BranchedRoom, how: Staging): Promise<void>;
  put(queries: Queries, state: State, room: BranchedRoom): void;
  replace(queries: Queries, state: State, room: BranchedRoom): void;
  drop(rows: RowsKey): Promise<void>;
  /** Keys of rows that no room has: the previous daemon ended in between. */
  strays(queries: Queries): RowsKey[];
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

/** Limit of a state, which is in memory as a whole, and a second time while it is written. */
const MAX_BYTES = 512 * 1024 ** 2;
/** Approximate size of a row in addition to its texts. */
const ROW_BYTES = 64;
/** Rows per step: up to 4 MiB. */
const ROWS_AT_ONCE = 64;
/** Time limit for inserting staged rows in one commit, during which the event loop is blocked. */
const STAGE_MS = 2;

type Value = Values[number];

/** The rows of a key, in order of the primary key. Throws quota_exceeded. */
export function* takeRows(queries: Queries, table: SQLiteTable, key: RoomUid | RowsKey): Steps<Rows> {
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
  for (let read = select("")([key]); ; ) {
    for (const row of read) {
      rows.push(row);
      bytes += row.reduce<number>((sum, value) => sum + bytesOf(value), ROW_BYTES);
    }
    if (bytes > MAX_BYTES) throw tooMuch(name, bytes);
    const last = read.at(-1);
    if (!last || read.length < ROWS_AT_ONCE) return { columns, rows };
    yield;
    read = next([key, ...places.map((place) => last[place] ?? null)]);
  }
}

const bytesOf = (value: Value): number => (value === null ? 0 : Buffer.byteLength(String(value)));

/** Converters of a column's values for this room. */
type Changes = Record<string, (value: Value) => Value>;

export function putRows(
  queries: Queries,
  table: SQLiteTable,
  key: RoomUid | RowsKey,
  { columns, rows }: Rows,
  changes: Changes = {},
): void {
  const insert = inserterOf(queries, table, key, columns, changes);
  for (const row of rows) insert(row);
}

/** Inserts rows that no room has yet, some in each commit. Rejects with the signal's reason. */
export async function stageRows(
  how: Committing,
  table: SQLiteTable,
  key: RowsKey,
  { columns, rows }: Rows,
  changes: Changes = {},
): Promise<void> {
  requireKnown(table, columns);
  await inCommits(how, rows, (queries) => inserterOf(queries, table, key, columns, changes));
}

interface Committing {
  database: Pick<Database, "commit">;
  over?: AbortSignal | undefined;
  /** Whether the commits may use the whole reserve of the disk. */
  isVital?: boolean;
}

/** Writes items, some in each commit, with the function that `prepare` returns. Rejects with the signal's reason. */
export async function inCommits<Item>(
  { database, over, isVital = false }: Committing,
  items: readonly Item[],
  prepare: (queries: Queries) => (item: Item) => void,
): Promise<void> {
  for (let at = 0; at < items.length; ) {
    const from = at;
    at = await database.commit((queries) => {
      over?.throwIfAborted();
      const write = prepare(queries);
      const until = monotonicMs() + STAGE_MS;
      let next = from;
      do write(items[next++] as Item);
      while (next < items.length && monotonicMs() < until);
      return next;
    }, isVital);
  }
}

/** Keys of the table's rows that no room has. */
export function straysIn(queries: Queries, table: SQLiteTable): RowsKey[] {
  const name = getTableName(table);
  const next = (after: string) => `(SELECT min(room_uid) FROM ${name} WHERE room_uid > ${after})`;
  const read = rawQuery<{ room_uid: RowsKey }>(
    queries,
    `WITH RECURSIVE found (room_uid) AS (
       SELECT ${next("''")} UNION ALL SELECT ${next("found.room_uid")} FROM found WHERE found.room_uid IS NOT NULL
     )
     SELECT room_uid FROM found WHERE room_uid IS NOT NULL AND room_uid NOT IN (SELECT rows_key FROM room_rows)
       AND room_uid NOT IN (SELECT room_uid FROM rooms EXCEPT SELECT room_uid FROM room_rows)`,
  );
  return read([]).map(({ room_uid }) => room_uid);
}

/** Also for a state without rows. */
function requireKnown(table: SQLiteTable, columns: readonly string[]): void {
  const known = columnsOf(table);
  const stranger = columns.find((column) => !known.includes(column));
  if (stranger !== undefined) throw new Error(`this roomd's table ${getTableName(table)} has no column ${stranger}`);
}

function inserterOf(
  queries: Queries,
  table: SQLiteTable,
  key: RoomUid | RowsKey,
  columns: readonly string[],
  changes: Changes,
): (row: Values) => void {
  const name = getTableName(table);
  requireKnown(table, columns);
  const changeOf = columns.map((column) => changes[column]);
  const places = ["room_uid", ...columns].map(() => "?").join();
  const insert = rawStatement(queries, `INSERT INTO ${name} (room_uid, ${columns.join()}) VALUES (${places})`);
  return (row) => insert([key, ...row.map((value, at) => changeOf[at]?.(value) ?? value)]);
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

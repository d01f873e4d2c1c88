/**
 * Owns how a noun branches with its room: what of its rows a checkpoint takes, and how they come into another room, or back into
 * their own. A state is plain JSON. It names its columns, so that a later roomd knows them again and gives new ones their defaults.
 *
 *   take      reads; all nouns in one transaction, while nothing of the room runs
 *   put       fills another room, which has nothing of the noun yet
 *   replace   turns the room itself back: what it has now goes
 *   requireSpace  before a replace that nothing may keep from coming to its end: whether there is space for it; replace itself asks no more
 *   wake      after the commit of put or replace: who waits looks again, and timers are set anew
 *   accept    holds what came from outside, where anybody may have written it, against what take could have returned
 *
 * take, put and replace may run twice, and be rolled back, as every write.
 */
import { getTableColumns, getTableName } from "drizzle-orm";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import { ServiceError } from "../core/service-error.ts";
import { type Queries, rawQuery, rawStatement, rawValues, type Values } from "./client.ts";

/** A room that is filled or turned back. */
export interface BranchedRoom {
  room_uid: RoomUid;
  org_id: OrgId;
  /** How long its time stood still: a deadline that was running is so much later. */
  pausedMs: number;
}

export interface Branch<State> {
  /** Throws quota_exceeded where there is more than a checkpoint can have. */
  take(queries: Queries, roomUid: RoomUid): State;
  put(queries: Queries, state: State, room: BranchedRoom): void;
  replace(queries: Queries, state: State, room: BranchedRoom): void;
  /** Throws quota_exceeded. */
  requireSpace(queries: Queries, state: State, room: BranchedRoom): void;
  wake(room: BranchedRoom): Promise<void>;
  /** Throws Foreign (foreign.ts), and quota_exceeded where that is known already. */
  accept(given: unknown, origin: Origin): Promise<State>;
}

/** Of what came from outside. */
export interface Origin {
  /** When it was taken, as its file says. */
  takenAtMs: number;
  /** Whose it is once it is put; null: nobody puts it yet. */
  org_id: OrgId | null;
}

/** Rows of one owner, without the column that says whose they are. */
export interface Rows {
  columns: string[];
  rows: Values[];
}

/** A state is in memory as a whole, and once more while it is written. */
const MOST_BYTES = 512 * 1024 ** 2;
/** What a row takes beside its texts, more or less. */
const ROW_BYTES = 64;

type Value = Values[number];

/** The rows of a room, in order of the primary key. Throws quota_exceeded. */
export function takeRows(queries: Queries, table: SQLiteTable, roomUid: RoomUid): Rows {
  const name = getTableName(table);
  const columns = columnsOf(table);
  requireFits(queries, name, columns, roomUid);
  const { primaryKeys, columns: all } = getTableConfig(table);
  const own = [...primaryKeys.flatMap((key) => key.columns), ...all.filter((column) => column.primary)];
  const order = own.map((column) => column.name);
  const read = rawValues(queries, `SELECT ${columns.join()} FROM ${name} WHERE room_uid = ? ORDER BY ${order.join()}`);
  return { columns, rows: read([roomUid]) };
}

/** `changed` makes of a column's values what they are in this room. */
export function putRows(
  queries: Queries,
  table: SQLiteTable,
  roomUid: RoomUid,
  { columns, rows }: Rows,
  changed: Record<string, (value: Value) => Value> = {},
): void {
  const name = getTableName(table);
  const known = columnsOf(table);
  const stranger = columns.find((column) => !known.includes(column));
  if (stranger !== undefined) throw new Error(`this roomd's table ${name} has no column ${stranger}`);
  const changes = columns.map((column) => changed[column]);
  const places = ["room_uid", ...columns].map(() => "?").join();
  const insert = rawStatement(queries, `INSERT INTO ${name} (room_uid, ${columns.join()}) VALUES (${places})`);
  for (const row of rows) insert([roomUid, ...row.map((value, at) => changes[at]?.(value) ?? value)]);
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

function requireFits(queries: Queries, name: string, columns: readonly string[], roomUid: RoomUid): void {
  const texts = columns.map((column) => `ifnull(octet_length(${column}), 0)`).join(" + ");
  const measure = rawQuery<{ bytes: number }>(
    queries,
    `SELECT ifnull(sum(${ROW_BYTES} + ${texts}), 0) AS bytes FROM ${name} WHERE room_uid = ?`,
  );
  const bytes = measure([roomUid])[0]?.bytes ?? 0;
  if (bytes <= MOST_BYTES) return;
  throw new ServiceError("quota_exceeded", {
    detail: `The room's ${name} take ${bytes} bytes; a checkpoint can have ${MOST_BYTES} of them.`,
    details: { limit: name, used: bytes, cap: MOST_BYTES },
  });
}

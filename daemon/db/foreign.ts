/**
 * Owns rows that anybody may have written: a file from outside says what is in them. Each is held against what its noun could have
 * written itself, column by column, before it comes near a table; which room it is of, no row says.
 */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { getTableColumns, getTableName } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { parseJson } from "../core/json.ts";
import { loopTime, Pieces } from "../core/loop/index.ts";
import type { Rows } from "./branch.ts";
import type { Values } from "./client.ts";

/** What came is none that a noun has written; `message` says what of it. */
export class Foreign extends Error {
  override name = "Foreign";
}

type Cell = Values[number];

/** What may stand in a column. */
export type Cells = Readonly<Record<string, (cell: Cell) => boolean>>;

export const isText = (pattern: RegExp) => (cell: Cell) => typeof cell === "string" && pattern.test(cell);
export const isOneOf = (names: readonly string[]) => (cell: Cell) => names.includes(cell as string);
export const isFlag = (cell: Cell) => cell === 0 || cell === 1;
export const isCount = (least: number, most: number) => (cell: Cell) =>
  typeof cell === "number" && Number.isSafeInteger(cell) && cell >= least && cell <= most;
/** Clocks of hosts differ, and some are set back: so much later than its file something may be. */
export const CLOCKS_APART_MS = 3_600_000;
export const isMomentBy = (latestMs: number) => (cell: Cell) => {
  if (typeof cell !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(cell)) return false;
  const at = Date.parse(cell);
  return at >= 0 && at <= latestMs;
};
export const orNull = (is: (cell: Cell) => boolean) => (cell: Cell) => cell === null || is(cell);
/** Written as this program writes it: what it takes is counted by its text. */
export const isJson = (schema: TSchema) => (cell: Cell) => {
  const value = jsonOf(cell);
  return value !== undefined && Value.Check(schema, value);
};

export function jsonOf(cell: Cell): unknown {
  if (typeof cell !== "string") return undefined;
  try {
    const value = parseJson(cell);
    return JSON.stringify(value) === cell ? value : undefined;
  } catch {
    return undefined;
  }
}

const rows = Type.Object(
  { columns: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 }), rows: Type.Array(Type.Array(Type.Any())) },
  { additionalProperties: false },
);

/** Columns of a row by their names. */
export type Named = Record<string, Cell>;

/** All columns of the table and no others, each as `cells` says; `each` sees every row besides, and may say what it is instead. Throws Foreign. */
export async function acceptRows(
  table: SQLiteTable,
  given: unknown,
  { cells, most, each }: { cells: Cells; most?: number; each: (row: Named) => Named | undefined },
): Promise<Rows> {
  const name = getTableName(table);
  if (!Value.Check(rows, given)) throw new Foreign(`its ${name} are no rows`);
  const known = Object.values(getTableColumns(table))
    .map((column) => column.name)
    .filter((column) => column !== "room_uid");
  const { columns } = given;
  const isAll = columns.length === known.length && known.every((column) => columns.includes(column));
  if (!isAll) throw new Foreign(`its ${name} have other columns than those of this roomd`);
  if (most !== undefined && given.rows.length > most)
    throw new Foreign(`it has ${given.rows.length} ${name}, and a room may have ${most}`);
  const pieces = new Pieces(loopTime, loopTime.owner, "room.rows");
  for (const [at, row] of given.rows.entries()) {
    const turn = pieces.next();
    if (turn) await turn;
    if (row.length !== columns.length) throw new Foreign(`one of its ${name} is no row`);
    for (const [place, column] of columns.entries()) {
      if (!cells[column]?.(row[place]))
        throw new Foreign(`${column} of one of its ${name} is none that a room can have`);
    }
    const changed = each(Object.fromEntries(columns.map((column, place) => [column, row[place]])));
    if (changed) given.rows[at] = columns.map((column, place) => (column in changed ? changed[column] : row[place]));
  }
  return given as Rows;
}

/** What of a state is no rows. Throws Foreign. */
export function accept<S extends TSchema>(schema: S, given: unknown, what: string): Static<S> {
  if (Value.Check(schema, given)) return given as Static<S>;
  throw new Foreign(`what it says of its ${what} is none that a room can have`);
}

/** Throws Foreign where one comes twice. */
export function onlyOnce(what: string): (name: unknown) => void {
  const seen = new Set<unknown>();
  return (name) => {
    if (seen.has(name)) throw new Foreign(`it has two ${what} of one name`);
    seen.add(name);
  };
}

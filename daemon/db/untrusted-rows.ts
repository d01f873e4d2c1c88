/**
 * Validation of untrusted rows, such as of a file from outside. Each is checked column by column against the rows that its noun could have
 * written itself, before it is inserted; the room is never taken from a row.
 */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { getTableColumns, getTableName } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { parseJson } from "../core/json.ts";
import { loopTime, Pieces } from "../core/loop/index.ts";
import type { Rows } from "./branch.ts";
import type { Values } from "./client.ts";

/** The input could not have been written by its noun; `message` has the reason. */
export class UntrustedRows extends Error {
  override name = "Foreign";
}

type Cell = Values[number];

/** Valid values of each column. */
export type Cells = Readonly<Record<string, (cell: Cell) => boolean>>;

export const isText = (pattern: RegExp) => (cell: Cell) => typeof cell === "string" && pattern.test(cell);
export const isOneOf = (names: readonly string[]) => (cell: Cell) => names.includes(cell as string);
export const isFlag = (cell: Cell) => cell === 0 || cell === 1;
export const isCount = (least: number, most: number) => (cell: Cell) =>
  typeof cell === "number" && Number.isSafeInteger(cell) && cell >= least && cell <= most;
/** Clocks of hosts differ, and some are set back: a timestamp may be this much later than its file. */
export const CLOCKS_APART_MS = 3_600_000;
export const isMomentBy = (latestMs: number) => (cell: Cell) => {
  if (typeof cell !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(cell)) return false;
  const at = Date.parse(cell);
  return at >= 0 && at <= latestMs;
};
export const orNull = (is: (cell: Cell) => boolean) => (cell: Cell) => cell === null || is(cell);
/** Accepts JSON in this program's own format: its size is counted by its text. */
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

/** Values of a row by column name. */
export type NamedCells = Record<string, Cell>;

/**
 * Requires all columns of the table and no others, each valid by `cells`; `each` also checks every row, and may replace it. Throws Foreign.
 */
export async function acceptRows(
  table: SQLiteTable,
  given: unknown,
  { cells, most, each }: { cells: Cells; most?: number; each: (row: NamedCells) => NamedCells | undefined },
): Promise<Rows> {
  const name = getTableName(table);
  if (!Value.Check(rows, given)) throw new UntrustedRows(`its ${name} are not rows`);
  const known = Object.values(getTableColumns(table))
    .map((column) => column.name)
    .filter((column) => column !== "room_uid");
  const { columns } = given;
  const isAll = columns.length === known.length && known.every((column) => columns.includes(column));
  if (!isAll) throw new UntrustedRows(`its ${name} have other columns than those of this roomd`);
  if (most !== undefined && given.rows.length > most)
    throw new UntrustedRows(`it has ${given.rows.length} ${name}, and a room may have ${most}`);
  const pieces = new Pieces(loopTime, loopTime.owner, "room.rows");
  for (const [at, row] of given.rows.entries()) {
    const turn = pieces.next();
    if (turn) await turn;
    if (row.length !== columns.length) throw new UntrustedRows(`one of its ${name} is not a row`);
    for (const [place, column] of columns.entries()) {
      if (!cells[column]?.(row[place])) throw new UntrustedRows(`${column} of one of its ${name} has an invalid value`);
    }
    const changed = each(Object.fromEntries(columns.map((column, place) => [column, row[place]])));
    if (changed) given.rows[at] = columns.map((column, place) => (column in changed ? changed[column] : row[place]));
  }
  return given as Rows;
}

/** Validates the parts of a state that are not rows. Throws Foreign. */
export function accept<S extends TSchema>(schema: S, given: unknown, subject: string): Static<S> {
  if (Value.Check(schema, given)) return given as Static<S>;
  throw new UntrustedRows(`the part about its ${subject} is malformed`);
}

/** Throws Foreign on a duplicate. */
export function onlyOnce(kind: string): (name: unknown) => void {
  const seen = new Set<unknown>();
  return (name) => {
    if (seen.has(name)) throw new UntrustedRows(`it has two ${kind} of one name`);
    seen.add(name);
  };
}

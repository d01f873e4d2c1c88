/**
 * Fills: background rewrites of tables for a new schema version, in pieces while the service answers.
 *
 *   release N      expand      a migration adds columns or tables, and names the fill; the code writes old and new, and reads old
 *                  fill        rows are rewritten in key order; each commit stores the last key, so that an interrupted fill continues
 *   release N + 1  contract    a migration that requires the fill (`after`) drops the old; the code reads new
 *
 * A fill that is incomplete when a migration requires it, for example because a release is skipped, is finished before the service answers.
 */
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { monotonicMs } from "../core/clock.ts";
import { parseJson } from "../core/json.ts";
import { loopTime, Pieces } from "../core/loop/index.ts";
import { checkpointsWithin } from "./checkpoints.ts";
import {
  type Connection,
  noteOthersWrites,
  type Queries,
  rawQuery,
  rawStatement,
  rawValues,
  type Values,
} from "./client.ts";
import type { Database } from "./transact.ts";

export const fills = sqliteTable("fills", { name: text().primaryKey(), last_key: text() });

export interface Fill {
  name: string;
  table: string;
  /** Columns of the primary key (numbers and texts), or `rowid`. */
  key: readonly string[];
  /** A statement with the condition `$piece`, which selects rows of the table. Must be idempotent: rows may already be rewritten. */
  change: string;
}

/** Target duration of one piece. */
const PIECE_MS = 3;
const FIRST_ROWS = 16;
/** A commit with more rows would write too many pages. */
const MAX_ROWS = 500;
/** Rows per piece if no caller waits. */
const ROWS_ALONE = 10_000;

/** Starts a fill. Within the transaction of its migration. */
export function beginFill({ execute }: Pick<Connection, "execute">, { name }: Fill): void {
  execute(`INSERT INTO fills (name) VALUES ('${name}')`);
}

/** Rewrites the next rows; returns whether the fill is complete. Within a transaction. */
function fillPiece(queries: Queries, { name, table, key, change }: Fill, rows: number): boolean {
  const [state] = rawQuery<{ last_key: string | null }>(queries, "SELECT last_key FROM fills WHERE name = ?")([name]);
  if (!state) return true;
  const last = state.last_key === null ? [] : (parseJson(state.last_key) as Values);
  const columns = `(${key.join(", ")})`;
  const places = `(${key.map(() => "?").join(", ")})`;
  const above = last.length === 0 ? "true" : `${columns} > ${places}`;
  const names = key.join(", ");
  const [end] = rawValues(
    queries,
    `SELECT ${names} FROM ${table} WHERE ${above} ORDER BY ${names} LIMIT 1 OFFSET ?`,
  )([...last, rows - 1]);
  const piece = end ? `${above} AND ${columns} <= ${places}` : above;
  rawStatement(queries, change.replace("$piece", piece))([...last, ...(end ?? [])]);
  if (!end) rawStatement(queries, "DELETE FROM fills WHERE name = ?")([name]);
  else rawStatement(queries, "UPDATE fills SET last_key = ? WHERE name = ?")([JSON.stringify(end), name]);
  return end === undefined;
}

/** Continues all incomplete fills, one after another, until they are complete or the signal is aborted. Throws errors of commits. */
export async function runFills(database: Database, all: readonly Fill[], signal: AbortSignal): Promise<void> {
  const left = new Set(
    rawQuery<{ name: string }>(database.queries, "SELECT name FROM fills")([]).map(({ name }) => name),
  );
  const pieces = new Pieces(loopTime, "host", "db.fill");
  for (const fill of all.filter(({ name }) => left.has(name))) {
    for (let rows = FIRST_ROWS, isOver = false; !isOver && !signal.aborted; ) {
      await pieces.turn();
      let tookMs = 0;
      isOver = await database.commit((queries) => {
        const startedAt = monotonicMs();
        noteOthersWrites(queries);
        const isLast = fillPiece(queries, fill, rows);
        tookMs = monotonicMs() - startedAt;
        return isLast;
      }, false);
      if (tookMs > PIECE_MS) rows = Math.max(1, rows >> 1);
      else if (tookMs < PIECE_MS / 2) rows = Math.min(MAX_ROWS, 2 * rows);
    }
  }
}

/** Finishes a fill before the service answers. `onPiece` is called before each piece. */
export function finishFill(connection: Connection, fill: Fill, onPiece: () => void): void {
  const checkpoints = checkpointsWithin(connection);
  for (let isOver = false; !isOver; ) {
    onPiece();
    connection.execute("BEGIN IMMEDIATE");
    try {
      isOver = fillPiece(connection.queries, fill, ROWS_ALONE);
      connection.execute("COMMIT");
    } catch (error) {
      connection.execute("ROLLBACK");
      throw error;
    }
    void checkpoints.committed();
  }
}

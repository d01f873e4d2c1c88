/**
 * This host's copy of the rows that hosts share. They are written in pieces, each in a separate commit: rows that do not fit are
 * quarantined (unfit.ts), and a failure concerns no other write. A daemon and concurrent operator commands share the copy; the first to
 * read changes applies them.
 */
import type { Queries } from "../db/client.ts";
import type { SharedRow, SharedRows } from "../db/shared-rows.ts";
import type { LocalDatabase } from "../db/transact.ts";
import {
  isOwed,
  isSame,
  type NumberedRow,
  type Point,
  pointOf,
  seenOf,
  setOwed,
  setPoint,
  setSeen,
} from "./replica.ts";
import { noteRemoved } from "./tombstones.ts";
import { forgetUnfit, noteUnfit, unfitAfter } from "./unfit.ts";

/** Rows written in one turn of the event loop, which takes some milliseconds. */
const PIECE_ROWS = 100;

export class Copy {
  readonly shared: SharedRows;
  readonly #database: LocalDatabase;
  /** Whether unfit rows were set aside since the last retry. */
  hasNewUnfit = false;

  constructor(database: LocalDatabase, shared: SharedRows) {
    this.#database = database;
    this.shared = shared;
  }

  get queries(): Queries {
    return this.#database.queries;
  }

  get point(): Point {
    return pointOf(this.queries);
  }

  get seen(): Point | null {
    return seenOf(this.queries);
  }

  /** Rows follow as of this change. */
  async see(seen: Point): Promise<void> {
    const known = this.seen ?? this.point;
    if (!isSame(known, seen)) await this.#commit((queries) => setSeen(queries, seen));
  }

  /** Whether it has no rows. */
  get isEmpty(): boolean {
    return this.shared.names.every((tbl) => this.shared.keysAfter(tbl, "", 1).length === 0);
  }

  /**
   * Writes rows to the copy in pieces, then sets its point to `to`. Returns false if another process has moved the point. `first` runs in
   * the commit of each piece, before the rows.
   */
  async bring<Row extends SharedRow & { seq?: number }>(
    from: Point,
    rows: readonly Row[],
    to: Point,
    first: (queries: Queries, piece: readonly Row[], isLast: boolean) => void = () => {},
  ): Promise<boolean> {
    const pieces = piecesOf(rows);
    for (const [index, piece] of pieces.entries()) {
      const isLast = index === pieces.length - 1;
      const isBrought = await this.#commit((queries) => {
        if (pointOf(queries).change_id !== from.change_id) return false;
        first(queries, piece, isLast);
        this.write(queries, piece);
        if (isLast) setPoint(queries, to);
        return true;
      });
      if (!isBrought) return false;
    }
    return true;
  }

  /** Writes rows and sets aside the unfit ones. Within a commit. */
  write(queries: Queries, rows: readonly SharedRow[]): void {
    noteRemoved(queries, this.shared, rows);
    const unfit = this.shared.bring(rows);
    noteUnfit(queries, rows, unfit);
    if (unfit.length > 0) this.hasNewUnfit = true;
  }

  /** Sets aside the deletion of rows to which other rows refer. */
  async keep(rows: readonly Pick<SharedRow, "tbl" | "key">[]): Promise<void> {
    const reason = "the directory lacks this row, and rows of this host refer to it";
    await this.#commit((queries) => {
      noteUnfit(
        queries,
        [],
        rows.map(({ tbl, key }) => ({ tbl, key, row: null, reason })),
      );
    });
  }

  get isOwed(): boolean {
    return isOwed(this.queries);
  }

  async setOwed(is_owed: boolean): Promise<void> {
    if (is_owed !== this.isOwed) await this.#commit((queries) => setOwed(queries, is_owed));
  }

  /** Moves the point, with rows as of a later change. Returns false if another process has moved it. */
  reach(from: Point, to: Point, seen: Point): Promise<boolean> {
    return this.bring(from, [], to, (queries) => setSeen(queries, seen));
  }

  /** Removes rows that the cluster directory lacks. Returns the keys of rows that remain because other rows refer to them. */
  async remove(from: Point, tbl: string, keys: readonly string[], isSetBack: boolean): Promise<string[]> {
    const kept: string[] = [];
    for (let at = 0; at < keys.length; at += PIECE_ROWS) {
      const rows = keys.slice(at, at + PIECE_ROWS).map((key) => ({ tbl, key, row: null }));
      const refused = await this.#commit((queries) => {
        if (pointOf(queries).change_id !== from.change_id) return [];
        // A directory that was set back lost these rows, and a failover may return them: none of them was revoked.
        if (!isSetBack) noteRemoved(queries, this.shared, rows);
        return this.shared.bring(rows);
      });
      kept.push(...refused.map(({ key }) => key));
    }
    return kept;
  }

  /** Forgets the unfit rows before all rows of the cluster directory are read: those still unfit are noted again. */
  async forgetUnfit(from: Point): Promise<void> {
    await this.#commit((queries) => pointOf(queries).change_id === from.change_id && forgetUnfit(queries));
  }

  /** Retries the unfit rows. Returns whether at least one fits now. */
  async tryUnfit(): Promise<boolean> {
    this.hasNewUnfit = false;
    let isAny = false;
    let after = { tbl: "", key: "" };
    for (;;) {
      if (unfitAfter(this.queries, after, 1).length === 0) return isAny;
      // The rows are read within the commit: another process with the same copy may write newer versions of them.
      const { last, fit } = await this.#commit((queries) => {
        const rows = unfitAfter(queries, after, PIECE_ROWS);
        const left = this.shared.bring(rows);
        noteUnfit(queries, rows, left);
        return { last: rows.at(-1), fit: rows.length - left.length };
      });
      if (last === undefined) return isAny;
      isAny ||= fit > 0;
      after = last;
    }
  }

  async #commit<T>(work: (queries: Queries) => T): Promise<T> {
    const [done] = await this.#database.commitTogether([work], true);
    if (done?.status !== "fulfilled") throw done?.reason;
    return done.value as T;
  }
}

/** Keeps the rows of one change in one piece, unless they exceed two pieces. */
function piecesOf<Row extends { seq?: number }>(rows: readonly Row[]): Row[][] {
  const pieces: Row[][] = [[]];
  for (const row of rows) {
    const piece = pieces.at(-1) as Row[];
    const isNext = piece.at(-1)?.seq !== row.seq || row.seq === undefined;
    if (piece.length >= 2 * PIECE_ROWS || (piece.length >= PIECE_ROWS && isNext)) pieces.push([row]);
    else piece.push(row);
  }
  return pieces;
}

/** Groups rows by the sequence number of their change. */
export function byChange(rows: readonly NumberedRow[]): Map<number, NumberedRow[]> {
  const found = new Map<number, NumberedRow[]>();
  for (const row of rows) {
    const same = found.get(row.seq);
    if (same) same.push(row);
    else found.set(row.seq, [row]);
  }
  return found;
}

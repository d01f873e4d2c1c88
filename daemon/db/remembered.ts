/** Owns rows that nearly every request asks for, remembered until somebody may have changed them. */
import { othersWrites, type Queries } from "./client.ts";

/** Of one table and its look-up; what is not there is asked for again. */
const MOST_ROWS = 10_000;

export class Remembered<Row> {
  readonly #known = new WeakMap<Queries, { others: number; rows: Map<string, Row> }>();

  /** The row of this name: what `find` found, or finds now. Outside of transactions only: what is read there may be taken back. */
  get(queries: Queries, name: string, find: () => Row | undefined): Row | undefined {
    const rows = this.#rowsOf(queries);
    const row = rows.get(name) ?? find();
    if (row !== undefined && rows.size < MOST_ROWS) rows.set(name, row);
    return row;
  }

  /** Before this process changes the table. What other processes change shows by itself. */
  forget(queries: Queries): void {
    this.#known.delete(queries);
  }

  #rowsOf(queries: Queries): Map<string, Row> {
    const others = othersWrites(queries);
    const known = this.#known.get(queries);
    if (known && known.others === others) return known.rows;
    const rows = new Map<string, Row>();
    this.#known.set(queries, { others, rows });
    return rows;
  }
}

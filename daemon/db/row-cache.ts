/** Cache of rows that nearly every request needs, invalidated by any possible change. */
import { othersWrites, type Queries } from "./client.ts";

/** For one table and its lookup; missing rows are not cached. */
const MAX_ROWS = 10_000;

export class RowCache<Row> {
  readonly #known = new WeakMap<Queries, { others: number; rows: Map<string, Row> }>();

  /** The row of this name: cached, or from `find`. Outside of transactions only: a row read there may be rolled back. */
  get(queries: Queries, name: string, find: () => Row | undefined): Row | undefined {
    const rows = this.#rowsOf(queries);
    const row = rows.get(name) ?? find();
    if (row !== undefined && rows.size < MAX_ROWS) rows.set(name, row);
    return row;
  }

  /** Call before this process changes the table. Changes by other processes are detected automatically. */
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

/** Pages of a list, which may have thousands of rows: the rows of one page, and the link to the next, which works without script. */
import type { WebContext } from "./request-context.ts";

/** Maximum number of rows on a page. */
export const MAX_ROWS = 100;

export interface ListPage<Row> {
  items: readonly Row[];
  /** Null: it is the last page. */
  next_cursor: string | null;
}

/** The cursor of a list in the page's address; null: its first page. */
export const cursorOf = ({ request }: WebContext, list: string): string | null => request.url.searchParams.get(list);

/** A page of a list that the API returns whole: the rows after the row whose ID is the cursor. */
export function pageOf<Row>(rows: readonly Row[], idOf: (row: Row) => string, cursor: string | null): ListPage<Row> {
  const from = rows.findIndex((row) => idOf(row) === cursor) + 1;
  const items = rows.slice(from, from + MAX_ROWS);
  const last = items.at(-1);
  return { items, next_cursor: last && from + MAX_ROWS < rows.length ? idOf(last) : null };
}

export function More({ at, list, after }: { at: string; list: string; after: string | null | undefined }) {
  return after ? (
    <p>
      <a href={`${at}?${new URLSearchParams({ [list]: after })}`}>More {list}</a>
    </p>
  ) : null;
}

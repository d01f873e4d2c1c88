/** Selects the rows of a long list that are in the page: the visible ones, and some before and after them. Pure. */

export interface SeenRows {
  from: number;
  /** Exclusive. */
  to: number;
}

/** Rows around the visible ones, in steps, so that a small movement changes nothing. */
const AROUND_ROWS = 6;
const STEP_ROWS = 4;

/** `before` are the previous rows: a jump renders only the visible ones, and the rows around them follow in the next update. */
export function seenRows(
  { topPx, heightPx, rowPx, count }: { topPx: number; heightPx: number; rowPx: number; count: number },
  before: SeenRows,
): SeenRows {
  const first = Math.floor(Math.max(0, topPx) / rowPx);
  const last = first + Math.ceil(heightPx / rowPx) + 1;
  const isLeap = first >= before.to || last <= before.from;
  const around = isLeap ? 0 : AROUND_ROWS;
  const from = Math.max(0, Math.floor((first - around) / STEP_ROWS) * STEP_ROWS);
  const to = Math.min(count, Math.ceil((last + around) / STEP_ROWS) * STEP_ROWS);
  return { from: Math.min(from, to), to };
}

/** Owns which rows of a long list are in the page: those that are seen, and some before and after them. Pure. */

export interface SeenRows {
  from: number;
  /** Exclusive. */
  to: number;
}

/** Kept around what is seen, in steps, so that the smallest movement changes nothing. */
const AROUND_ROWS = 6;
const STEP_ROWS = 4;

/** `before` is what was there: a leap makes what is seen alone, and what is around it comes with the next look. */
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

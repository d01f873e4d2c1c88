/** Owns which rows of a long list are in the page: those that are seen, and some before and after them. */

/** Kept around what is seen, in steps, so that the smallest movement changes nothing. */
const AROUND_ROWS = 12;
const STEP_ROWS = 4;

export function seenRows(topPx: number, heightPx: number, rowPx: number, count: number): { from: number; to: number } {
  const first = Math.floor(Math.max(0, topPx) / rowPx);
  const from = Math.max(0, Math.floor((first - AROUND_ROWS) / STEP_ROWS) * STEP_ROWS);
  const last = first + Math.ceil(heightPx / rowPx) + AROUND_ROWS;
  const to = Math.min(count, Math.ceil(last / STEP_ROWS) * STEP_ROWS);
  return { from: Math.min(from, to), to };
}

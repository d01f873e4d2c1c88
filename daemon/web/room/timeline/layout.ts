/**
 * Layout of a lane of the timeline: the items in the window, in rows if they overlap, and merged with a count if they are too close to
 * distinguish. Pure; its cost depends on the items in the window, its result on the window's width.
 */
import type { Scale } from "./scale.ts";

/** An item on a lane; `to` is `from` for a mark. */
export interface Lying {
  from: number;
  to: number;
  /** Only items of the same look are merged. */
  look: string;
}

export interface Placed<T> {
  /** Pixels from the window's left edge. */
  left: number;
  width: number;
  row: number;
  /** The first of them. */
  item: T;
  /** Number of merged items. */
  count: number;
}

export interface Window {
  /** As places on the axis. */
  from: number;
  to: number;
  /** Pixels. */
  width: number;
}

const MAX_ROWS = 3;
/** Narrower items are drawn with this width. */
const LEAST_WIDTH = 3;
/** Marks closer than this are merged. */
const MARK_WIDTH = 10;

/**
 * The items of one lane, in the order of `from`. Items that fit into no row are counted with the last item there. Spans too short to be
 * visible are merged with their neighbours.
 */
export function layLane<T extends Lying>(items: readonly T[], scale: Scale, window: Window): Placed<T>[] {
  const perPixel = (window.to - window.from) / window.width;
  const pixel = (moment: number) => (scale.place(moment) - window.from) / perPixel;
  const placed: Placed<T>[] = [];
  /** The last item of each row, spans and marks. */
  const last: (Placed<T> | undefined)[] = [];
  let lastMark: Placed<T> | undefined;
  for (const item of items) {
    // Compared as positions: a computed last pixel may be beyond the window.
    if (scale.place(item.from) > window.to) break;
    const left = pixel(item.from);
    const right = item.to === item.from ? left : pixel(item.to);
    if (right < -MARK_WIDTH) continue;
    if (item.to === item.from) {
      if (lastMark && left - lastMark.left < MARK_WIDTH && lastMark.item.look === item.look) {
        lastMark.count++;
        continue;
      }
      lastMark = { left, width: 0, row: 0, item, count: 1 };
      placed.push(lastMark);
      continue;
    }
    const width = Math.max(LEAST_WIDTH, right - left);
    const same = last.find(
      (each) => each && each.item.look === item.look && isShort(each, left) && width <= LEAST_WIDTH * 2,
    );
    if (same) {
      same.count++;
      same.width = Math.max(same.width, left + width - same.left);
      continue;
    }
    let row = last.findIndex((each) => !each || each.left + each.width <= left);
    if (row === -1 && last.length < MAX_ROWS) row = last.length;
    if (row === -1) {
      const under = last[MAX_ROWS - 1] as Placed<T>;
      under.count++;
      under.width = Math.max(under.width, left + width - under.left);
      continue;
    }
    const fresh = { left, width, row, item, count: 1 };
    last[row] = fresh;
    placed.push(fresh);
  }
  return placed;
}

/** Whether the item is, or represents, spans that are hardly visible, and ends here. */
function isShort({ left, width, count }: Placed<Lying>, at: number): boolean {
  return at - (left + width) < 1 && (width <= LEAST_WIDTH * 2 || count > 1);
}

/** Index of the first item, in the order of `from`, that may reach a moment: `reach[n]` is the latest end among items 0 to n. */
export function firstReaching(reach: readonly number[], moment: number): number {
  let [low, high] = [0, reach.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((reach[middle] as number) < moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Activity in `parts` parts of the axis between two positions, for the strip above the lanes. From 0 to 1. */
export function densityOf(items: readonly Lying[], scale: Scale, from: number, to: number, parts: number): number[] {
  const counts = new Array<number>(parts).fill(0);
  const size = (to - from) / parts;
  for (const item of items) {
    const begins = scale.place(item.from);
    const ends = item.to === item.from ? begins : scale.place(item.to);
    if (ends < from || begins > to) continue;
    const first = Math.max(0, Math.floor((begins - from) / size));
    const last = Math.min(parts - 1, Math.floor((ends - from) / size));
    for (let n = first; n <= last; n++) counts[n] = (counts[n] ?? 0) + 1;
  }
  const most = Math.max(1, ...counts);
  return counts.map((count) => Math.sqrt(count / most));
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800];

/** Times of the axis labels: round ones, far enough apart to be readable. */
export function ticksOf(scale: Scale, window: Window, leastPixels: number): { moment: number; left: number }[] {
  const perPixel = (window.to - window.from) / window.width;
  const step = 1000 * (STEPS.find((seconds) => (seconds * 1000) / perPixel >= leastPixels) ?? 604_800);
  const [first, last] = [scale.moment(window.from), scale.moment(window.to)];
  const ticks: { moment: number; left: number }[] = [];
  // Folded time takes less width: labels that would be too close are left out.
  const begin = Math.ceil(first / step) * step;
  const most = Math.ceil(window.width / leastPixels) + 1;
  for (let moment = begin, inspected = 0; moment <= last && inspected < 5000 && ticks.length < most; inspected++) {
    const left = (scale.place(moment) - window.from) / perPixel;
    const before = ticks.at(-1);
    const fold = scale.folds.find(({ from, to }) => from <= moment && moment < to);
    if (!fold && (!before || left - before.left >= leastPixels)) ticks.push({ moment, left });
    moment = fold ? Math.max(moment + step, Math.ceil(fold.to / step) * step) : moment + step;
  }
  return ticks;
}

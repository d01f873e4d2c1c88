/**
 * The axis of a timeline: maps times to positions. If idle time is folded, a gap without events has a small fixed width, however long it
 * was, and the axis marks it.
 */

export interface Scale {
  /** Position of a time, in displayed milliseconds. */
  place(moment: number): number;
  /** The moment of a place. */
  moment(place: number): number;
  /** Gaps that are folded, as start and end times. */
  folds: readonly Gap[];
}

export interface Gap {
  from: number;
  to: number;
}

/** Minimum length of a gap. */
export const LEAST_GAP_MS = 30_000;
/** Displayed length of a folded gap. */
const FOLDED_MS = 6_000;
/** Margin around events. */
const EDGE_MS = 2_000;

export const STRAIGHT: Scale = { place: (moment) => moment, moment: (place) => place, folds: [] };

interface Piece {
  from: number;
  to: number;
  /** Start and end on the axis. */
  begins: number;
  ends: number;
}

/** `busy`: spans with activity, in start order; they may overlap. The axis extends to `now`. */
export function foldedScale(busy: Iterable<Gap>, now: number): Scale {
  const folds = gapsOf(busy, now);
  if (folds.length === 0) return STRAIGHT;
  const pieces: Piece[] = [];
  let [moment, place] = [folds[0]?.from ?? 0, folds[0]?.from ?? 0];
  for (const { from, to } of folds) {
    if (from > moment) pieces.push({ from: moment, to: from, begins: place, ends: place + (from - moment) });
    place += from - moment;
    pieces.push({ from, to, begins: place, ends: place + FOLDED_MS });
    place += FOLDED_MS;
    moment = to;
  }
  const before = (at: number, of: (piece: Piece) => number) => {
    let [low, high] = [0, pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (of(pieces[middle] as Piece) <= at) low = middle + 1;
      else high = middle;
    }
    return pieces[low - 1];
  };
  return {
    folds,
    place: (at) => {
      const piece = before(at, ({ from }) => from);
      if (!piece) return at;
      if (at >= piece.to) return piece.ends + (at - piece.to);
      return piece.begins + ((at - piece.from) / (piece.to - piece.from)) * (piece.ends - piece.begins);
    },
    moment: (at) => {
      const piece = before(at, ({ begins }) => begins);
      if (!piece) return at;
      if (at >= piece.ends) return piece.to + (at - piece.ends);
      return piece.from + ((at - piece.begins) / (piece.ends - piece.begins)) * (piece.to - piece.from);
    },
  };
}

function gapsOf(busy: Iterable<Gap>, now: number): Gap[] {
  const gaps: Gap[] = [];
  let idleFrom: number | null = null;
  const gap = (to: number) => {
    if (idleFrom !== null && to - idleFrom > LEAST_GAP_MS) gaps.push({ from: idleFrom + EDGE_MS, to: to - EDGE_MS });
  };
  for (const { from, to } of busy) {
    gap(from);
    idleFrom = Math.max(idleFrom ?? to, to);
  }
  gap(now);
  return gaps;
}

/**
 * Owns the axis of a timeline: which moment is where. Where idle time is folded, a gap in which nothing happens takes a fixed little, however
 * long it was, and the axis says so there.
 */

export interface Scale {
  /** Where a moment is, in milliseconds of what is shown. */
  place(moment: number): number;
  /** The moment of a place. */
  moment(place: number): number;
  /** Gaps that are folded, as moments. */
  folds: readonly Gap[];
}

export interface Gap {
  from: number;
  to: number;
}

/** A gap is what lasts longer. */
export const LEAST_GAP_MS = 30_000;
/** And is shown as if it had lasted so long. */
const FOLDED_MS = 6_000;
/** Around what happens. */
const EDGE_MS = 2_000;

export const STRAIGHT: Scale = { place: (moment) => moment, moment: (place) => place, folds: [] };

interface Piece {
  from: number;
  to: number;
  /** Where it begins and ends on the axis. */
  begins: number;
  ends: number;
}

/** `busy`: when something goes on, in the order of their beginnings; they may overlap. Up to `now` the axis goes on. */
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

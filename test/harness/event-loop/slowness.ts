/**
 * How much slower this host computes now than the host for which the bounds on processor time were set: a CI host's processors may be
 * shared with others, which no figure of the host reveals.
 */
import { threadTime } from "../../../daemon/host/thread-time.ts";

/** A piece's processor time on the host of the bounds (2 cores of an AMD EPYC), without other load. */
const REFERENCE_MS = 0.8;
const PIECES = 21;
const WARM_UP = 10;

const MATERIAL = Array.from({ length: 5_000 }, (_, index) => ({ id: `row_${index}`, size: index, tags: ["a", "b"] }));

/** At least 1. By the median of pieces of work of one kind, which take some 25 ms together. */
export function slowness(): number {
  for (let piece = 0; piece < WARM_UP; piece++) pieceMs();
  const measured = Array.from({ length: PIECES }, pieceMs).toSorted((a, b) => a - b);
  return Math.max(1, (measured[(PIECES - 1) / 2] ?? 0) / REFERENCE_MS);
}

function pieceMs(): number {
  const began = threadTime();
  const copy = JSON.parse(JSON.stringify(MATERIAL)) as typeof MATERIAL;
  if (copy.length !== MATERIAL.length) throw new Error("the copy is not whole");
  return threadTime() - began;
}

/** Work in short steps, as a generator that yields after each step: run to completion, or in pieces of the event loop. */
import type { Pieces } from "./time-slices.ts";

export type Steps<Result> = Generator<undefined, Result>;

export function wholly<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

export async function inPieces<Result>(steps: Steps<Result>, pieces: Pick<Pieces, "next">): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    const turn = pieces.next();
    if (turn) await turn;
  }
}

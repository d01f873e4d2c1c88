/** Owns what shows a room as a whole: who waits for whom in it, and what happened in it. It only reads. */
import type { Bound } from "../../core/operation.ts";
import type { OverviewDeps } from "./deps.ts";
import { makeTimeline } from "./timeline.ts";
import { makeWaits } from "./waits.ts";

export function makeOverview(deps: OverviewDeps): { operations: Bound[] } {
  return { operations: [makeWaits(deps), makeTimeline(deps)] };
}

/** Owns what shows rooms as a whole: who waits for whom in one, what happened in it, and many at a glance. It only reads. */
import type { Bound } from "../../core/operation.ts";
import type { RoomChanges } from "../../core/room-changes.ts";
import type { OverviewDeps } from "./deps.ts";
import { makeNow } from "./now.ts";
import { makeRoomOverview } from "./rooms.ts";
import { makeTimeline } from "./timeline.ts";
import { makeWaits } from "./waits.ts";

export function makeOverview(deps: OverviewDeps, changes: RoomChanges): { operations: Bound[] } {
  return { operations: [makeWaits(deps), makeTimeline(deps), makeRoomOverview(deps), makeNow(deps, changes)] };
}

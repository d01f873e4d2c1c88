/** Read-only views of whole rooms: the waits of agents, the timeline, and many rooms at a glance. */
import type { Bound } from "../../core/call/operation.ts";
import type { RoomChanges } from "../../core/call/room-changes.ts";
import type { OverviewDeps } from "./deps.ts";
import { makeNow } from "./now.ts";
import { makeRoomOverview } from "./rooms.ts";
import { makeTimeline } from "./timeline.ts";
import { makeWaits } from "./waits.ts";

export function makeOverview(deps: OverviewDeps, changes: RoomChanges): { operations: Bound[] } {
  return { operations: [makeWaits(deps), makeTimeline(deps), makeRoomOverview(deps), makeNow(deps, changes)] };
}

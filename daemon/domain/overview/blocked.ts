/**
 * Number of agents of a room that wait for others, and whether some wait in a cycle. The search is bounded per room, since there are many.
 */
import type { RoomGlance } from "../../../shared/api/overview/room-overview.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { Steps } from "../../core/loop/index.ts";
import { hasRing } from "./cycles.ts";
import type { OverviewDeps } from "./deps.ts";
import { type Bounds, gatherBlocked } from "./gather.ts";
import { maySee } from "./visibility.ts";
import { edgesOf } from "./wait-graph.ts";

/** A few milliseconds of work, for a room with that many waits. */
const OF_MANY_ROOMS: Bounds = { requests: 1000, barriers: 64, nameBytes: 128 * 1024 };
const MAX_EDGES = 20_000;

export function* blockedIn(
  deps: OverviewDeps,
  caller: Caller,
  roomUid: RoomUid,
): Steps<Pick<RoomGlance, "blocked" | "in_circle" | "truncated">> {
  const { waits, truncated } = yield* gatherBlocked(deps, roomUid, OF_MANY_ROOMS);
  const seen = waits.filter((wait) => maySee(caller, wait));
  const { edges, isPart } = yield* edgesOf(seen, MAX_EDGES);
  const blocked = new Set(seen.map(({ agent_id }) => agent_id)).size;
  return { blocked, in_circle: yield* hasRing(edges), truncated: truncated || isPart };
}

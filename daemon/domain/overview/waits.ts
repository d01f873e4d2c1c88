/** The `room_waits` call: the waits of a room's agents, and the cycles among them. */
import { MAX_WAITED_FOR, MAX_WAITS, roomWaits } from "../../../shared/api/overview/overview.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { at, wallMs } from "../../core/clock.ts";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { ringsOf } from "./cycles.ts";
import type { OverviewDeps } from "./deps.ts";
import { findRoom } from "./find.ts";
import { type Gathered, gather } from "./gather.ts";
import { ringText, summaryText } from "./summary.ts";
import { maySee } from "./visibility.ts";
import { edgesOf } from "./wait-graph.ts";

export function makeWaits(deps: OverviewDeps): Bound {
  return bind(roomWaits, {
    find: (call, params) => findRoom(deps, call, params),
    run: async ({ caller }, _input, { room_id, room_uid }) => {
      await new Pieces(loopTime, ownerOf(caller.org_id), roomWaits.name).turn();
      const nowMs = wallMs();
      const gathered = gather(deps, room_uid);
      const seen = gathered.waits.filter((wait) => maySee(caller, wait));
      const told = seen.slice(0, MAX_WAITS);
      const waits = told.map(({ needsAll: _, calledAt: __, on, ...rest }) => ({
        ...rest,
        on: on.slice(0, MAX_WAITED_FOR),
      }));
      const { cycles, isPart } = cyclesOf(told, nowMs);
      const truncated = gathered.truncated || seen.length > MAX_WAITS || isPart;
      const text = summaryText(waits, cycles, truncated, nowMs);
      return { outcome: "ok", body: { room_id, at: at(nowMs), waits, cycles, truncated, text } };
    },
  });
}

/** Limit of waited-for agents, in all, that are searched for cycles. */
const MAX_EDGES = 100_000;

/** `isPart`: not all waits were searched. */
export function cyclesOf(waits: readonly Gathered[], nowMs: number) {
  const { edges, needed, isPart } = edgesOf(waits, MAX_EDGES);
  const byAgent = Map.groupBy(needed, ({ agent_id }) => agent_id);
  const waitOf = (from: string, to: string) => byAgent.get(from)?.find(({ on }) => on.includes(to));
  const cycles = ringsOf(edges).map((agents) => ({ agents, text: ringText(agents, waitOf, nowMs) }));
  return { cycles, isPart };
}

/** The `room_waits` call: the waits of a room's agents, and the cycles among them. */

import type { OutputOf } from "../../../shared/api/contract.ts";
import { type Cycle, MAX_WAITED_FOR, MAX_WAITS, roomWaits } from "../../../shared/api/overview/overview.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { findRoom } from "../../core/call/room-target.ts";
import { at, wallMs } from "../../core/clock.ts";
import { inPieces, loopTime, ownerOf, Pieces, type Steps } from "../../core/loop/index.ts";
import { ringsOf } from "./cycles.ts";
import type { OverviewDeps } from "./deps.ts";
import { type Gathered, gather } from "./gather.ts";
import { ringText, summaryText } from "./summary.ts";
import { maySee } from "./visibility.ts";
import { edgesOf } from "./wait-graph.ts";

export function makeWaits(deps: OverviewDeps): Bound {
  return bind(roomWaits, {
    find: (call, params) => findRoom(deps, call, params),
    run: async ({ caller, signal }, _input, { room_id, room_uid }) => {
      const pieces = new Pieces(loopTime, ownerOf(caller.org_id), roomWaits.name, { signal });
      await pieces.turn();
      const nowMs = wallMs();
      const gathered = await inPieces(gather(deps, room_uid), pieces);
      const seen = gathered.waits.filter((wait) => maySee(caller, wait));
      const shown = seen.slice(0, MAX_WAITS);
      const waits = shown.map(({ needsAll: _, calledAt: __, on, ...rest }) => ({
        ...rest,
        on: on.slice(0, MAX_WAITED_FOR),
      }));
      const { cycles, isPart } = await inPieces(cyclesOf(shown, nowMs), pieces);
      const truncated = gathered.truncated || seen.length > MAX_WAITS || isPart;
      const text = summaryText(waits, cycles, truncated, nowMs);
      const body = { room_id, at: at(nowMs), waits, cycles, truncated, text };
      return { outcome: "ok", json: { bytes: await inPieces(bytesOf(body), pieces) } };
    },
  });
}

/** The body as JSON: a thousand waits name a hundred thousand agents. */
function* bytesOf({ waits, ...rest }: OutputOf<typeof roomWaits>): Steps<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (const [at, wait] of waits.entries()) {
    yield;
    parts.push(Buffer.from(`${at === 0 ? "" : ","}${JSON.stringify(wait)}`));
  }
  return Buffer.concat([Buffer.from('{"waits":['), ...parts, Buffer.from(`],${JSON.stringify(rest).slice(1)}`)]);
}

/** Limit of waited-for agents, in all, that are searched for cycles. */
const MAX_EDGES = 100_000;

/** `isPart`: not all waits were searched. */
export function* cyclesOf(waits: readonly Gathered[], nowMs: number): Steps<{ cycles: Cycle[]; isPart: boolean }> {
  const { edges, needed, isPart } = yield* edgesOf(waits, MAX_EDGES);
  const byAgent = Map.groupBy(needed, ({ agent_id }) => agent_id);
  const waitOf = (from: string, to: string) => byAgent.get(from)?.find(({ on }) => on.includes(to));
  const cycles = (yield* ringsOf(edges)).map((agents) => ({ agents, text: ringText(agents, waitOf, nowMs) }));
  return { cycles, isPart };
}

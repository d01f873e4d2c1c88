/** Owns room_waits: who waits for whom, and which of them wait for each other in a circle. */
import { MOST_WAITED_FOR, MOST_WAITS, roomWaits } from "../../../shared/api/overview.ts";
import { at } from "../../core/clock.ts";
import { type Bound, bind, type Caller } from "../../core/operation.ts";
import { LongWork } from "../../core/turn.ts";
import { ringsOf } from "./cycles.ts";
import type { OverviewDeps } from "./deps.ts";
import { findRoom } from "./find.ts";
import { type Gathered, gather } from "./gather.ts";
import { ringText, summaryText } from "./words.ts";

/** It can be much that is looked at: the event loop is one, and organizations take turns. */
const looks = new LongWork();

export function makeWaits(deps: OverviewDeps): Bound {
  return bind(roomWaits, {
    find: (call, params) => findRoom(deps, call, params),
    run: async ({ caller }, _input, { room_id, room_uid }) => {
      await looks.turn(caller.org_id);
      const nowMs = Date.now();
      const gathered = gather(deps, room_uid);
      const seen = gathered.waits.filter((wait) => maySee(caller, wait));
      const told = seen.slice(0, MOST_WAITS);
      const waits = told.map(({ needsAll: _, calledAt: __, on, ...rest }) => ({
        ...rest,
        on: on.slice(0, MOST_WAITED_FOR),
      }));
      const { cycles, isPart } = cyclesOf(told, nowMs);
      const truncated = gathered.truncated || seen.length > MOST_WAITS || isPart;
      const text = summaryText(waits, cycles, truncated, nowMs);
      return { outcome: "ok", body: { room_id, at: at(nowMs), waits, cycles, truncated, text } };
    },
  });
}

/** An agent sees what it waits for and who waits for it; commands see who may run them, or read what was run. */
function maySee({ agent_id, scopes, session }: Caller, { agent_id: waits, on, type }: Gathered): boolean {
  if (agent_id !== null) return waits === agent_id || on.includes(agent_id);
  return type !== "command" || session !== undefined || scopes.includes("exec") || scopes.includes("audit:read");
}

/** Agents who are waited for, in all, that circles are looked for among: thousands can be at a barrier, and thousands missing. */
const MOST_EDGES = 100_000;

/** Where one of several is enough, none of them holds up the agent. `isPart`: they are not looked for among all. */
function cyclesOf(waits: readonly Gathered[], nowMs: number) {
  const edges = new Map<string, Set<string>>();
  const needed = waits.filter(({ needsAll }) => needsAll);
  // Who waits for nothing is in no circle.
  const waiting = new Set(needed.map(({ agent_id }) => agent_id));
  let left = MOST_EDGES;
  for (const { agent_id, on } of needed) {
    left -= on.length;
    if (left < 0) break;
    const known = edges.get(agent_id) ?? new Set();
    edges.set(agent_id, known);
    for (const each of on) if (waiting.has(each)) known.add(each);
  }
  const byAgent = Map.groupBy(needed, ({ agent_id }) => agent_id);
  const waitOf = (from: string, to: string) => byAgent.get(from)?.find(({ on }) => on.includes(to));
  const cycles = ringsOf(edges).map((agents) => ({ agents, text: ringText(agents, waitOf, nowMs) }));
  return { cycles, isPart: left < 0 };
}

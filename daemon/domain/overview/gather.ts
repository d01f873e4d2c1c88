/**
 * Collects the current waits of a room's agents, of all kinds: calls in progress, requests without a reply, open barriers, and commands.
 * Agents wait in short calls, one after another: the wait continues between them.
 */
import { MAX_PARTIES } from "../../../shared/api/barriers.ts";
import { MAX_WAITS, type Wait } from "../../../shared/api/overview/overview.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { commandText } from "../../../shared/shell.ts";
import { line } from "../../../shared/timeline/words.ts";
import type { Steps } from "../../core/loop/index.ts";
import { type BarrierRow, missingOf, openBarriers } from "../barriers/index.ts";
import { type OpenRequest, openRequests } from "../fabric/index.ts";
import type { OverviewDeps } from "./deps.ts";

/** Waits that a step looks at: some tenths of a millisecond. */
const TOGETHER = 64;

/** A wait before it is shown. */
export interface Gathered extends Wait {
  /** Whether the wait ends only when all of its targets are done; otherwise one suffices. */
  needsAll: boolean;
  /** Start time of the call that currently waits; null without a call. */
  calledAt: string | null;
}

/** Bounds of the search in a room. */
export interface Bounds {
  /** Recipients of requests. */
  requests: number;
  /** Number of open barriers: each may have a thousand agents. */
  barriers: number;
  /** Total bytes of agent names at these barriers. */
  nameBytes: number;
}

const OF_ONE_ROOM: Bounds = { requests: 4 * MAX_WAITS, barriers: 256, nameBytes: 1024 * 1024 };

export interface GatheredWaits {
  waits: Gathered[];
  /** Whether waits beyond the bounds were not examined. */
  truncated: boolean;
}

/** The oldest first. */
export function* gather(deps: OverviewDeps, roomUid: RoomUid): Steps<GatheredWaits> {
  return yield* gatherSome(deps, roomUid, OF_ONE_ROOM, commands(deps, roomUid));
}

/** Waits of agents for each other: replies, and barriers. */
export function* gatherBlocked(deps: OverviewDeps, roomUid: RoomUid, most: Bounds): Steps<GatheredWaits> {
  const { waits, truncated } = yield* gatherSome(deps, roomUid, most, []);
  return { waits: waits.filter(({ type }) => type === "reply" || type === "barrier"), truncated };
}

function* gatherSome(
  deps: OverviewDeps,
  roomUid: RoomUid,
  most: Bounds,
  running: readonly Gathered[],
): Steps<GatheredWaits> {
  const requests = openRequests(deps.queries, roomUid, most.requests + 1);
  yield;
  const requestWaits = yield* replies(deps, roomUid, requests.slice(0, most.requests));
  const { waits, truncated } = yield* withCalls(deps, roomUid, [...requestWaits, ...running], most);
  return { waits, truncated: truncated || requests.length > most.requests };
}

/** Running commands, and the waits of agents, between their calls too. */
export function* going(deps: OverviewDeps, roomUid: RoomUid): Steps<Gathered[]> {
  return (yield* gather(deps, roomUid)).waits;
}

/** Adds the agents that wait at barriers, and calls in progress. A wait that two of these sources report is one wait. */
function* withCalls(
  deps: OverviewDeps,
  roomUid: RoomUid,
  others: readonly Gathered[],
  most: Bounds,
): Steps<GatheredWaits> {
  const barriers = yield* openBarriers(deps.queries, roomUid, most);
  const arrived = yield* arrivals(deps, roomUid, barriers.open);
  const found = new Map([...others, ...arrived].map((wait) => [keyOf(wait), wait]));
  yield;
  for (const [at, { shown, agents, on, since }] of [...deps.agents.waits.all(roomUid)].entries()) {
    if (at % TOGETHER === TOGETHER - 1) yield;
    for (const agent_id of agents) {
      const key = keyOf({ agent_id, ...shown });
      const known = found.get(key);
      if (known)
        found.set(key, { ...known, since: older(known.since, since), held: true, calledAt: known.calledAt ?? since });
      // A call at a barrier that was not found: the barrier is being released, or beyond the bounds.
      else if (shown.type !== "barrier") {
        const about = ABOUT[shown.type];
        found.set(key, {
          agent_id,
          ...shown,
          on: [...on()],
          since,
          held: true,
          about,
          needsAll: true,
          calledAt: since,
        });
      }
    }
  }
  const waits = [...found.values()].sort((a, b) => compare(a.since, b.since) || compare(a.agent_id, b.agent_id));
  return { waits, truncated: barriers.hasMore || arrived.length > MAX_WAITS };
}

const keyOf = ({ agent_id, type, id }: Pick<Gathered, "agent_id" | "type" | "id">): string =>
  `${agent_id} ${type} ${id}`;
const ABOUT = { reply: "request", inbox: "messages" } as const;

/** Requests without a reply. If the source or the recipient is gone, they are left out. */
function* replies({ agents }: OverviewDeps, roomUid: RoomUid, requests: readonly OpenRequest[]): Steps<Gathered[]> {
  const waits = new Map<string, Gathered>();
  const isGone = remembered((agentId) => agents.isGone(roomUid, agentId));
  for (const [at, { message_id, source, recipient, topic, created_at }] of requests.entries()) {
    if (at % TOGETHER === TOGETHER - 1) yield;
    if (isGone(source) || isGone(recipient)) continue;
    const known = waits.get(message_id);
    if (known) {
      known.on.push(recipient);
      known.needsAll = topic === null;
      continue;
    }
    const about = topic === null ? "request" : `request to topic ${topic}`;
    const rest = { since: created_at, held: false, about: line(about), needsAll: true, calledAt: null };
    waits.set(message_id, { agent_id: source, type: "reply", id: message_id, on: [recipient], ...rest });
  }
  return [...waits.values()];
}

/** Arrived agents wait for the missing ones: participants, or, if none are named, all agents of the room. */
function* arrivals({ agents }: OverviewDeps, roomUid: RoomUid, barriers: readonly BarrierRow[]): Steps<Gathered[]> {
  const isGone = remembered((agentId) => agents.isGone(roomUid, agentId));
  const everyone = barriers.some(({ participants }) => participants === null) ? agents.all(roomUid) : [];
  const found: Gathered[] = [];
  for (const row of barriers) {
    yield;
    const { barrier_id, generation, parties, arrived, opened_at } = row;
    const on = row.participants ? missingOf(row) : othersOf(everyone, arrived);
    const needsAll = on.length <= parties - arrived.length;
    const about = `generation ${generation}, ${arrived.length} of ${parties} arrived`;
    const rest = {
      type: "barrier",
      id: barrier_id,
      on,
      since: opened_at,
      held: false,
      about,
      needsAll,
      calledAt: null,
    } as const;
    for (const agent_id of arrived) if (!isGone(agent_id)) found.push({ agent_id, ...rest });
    // The following barriers are younger.
    if (found.length > MAX_WAITS) break;
  }
  return found;
}

/** One more than can be missing at a barrier is enough to conclude that not all of them are needed. */
function othersOf(everyone: readonly string[], arrived: readonly string[]): string[] {
  const there = new Set(arrived);
  const others: string[] = [];
  for (const agentId of everyone) {
    if (others.length > MAX_PARTIES) break;
    if (!there.has(agentId)) others.push(agentId);
  }
  return others;
}

function commands({ sandboxes }: OverviewDeps, roomUid: RoomUid): Gathered[] {
  return sandboxes.going(roomUid).commands.map(({ agent_id, exec_id, argv, since }) => {
    const about = line(argv === null ? "command" : commandText(argv));
    return {
      agent_id,
      type: "command",
      id: exec_id,
      on: [],
      since,
      held: false,
      about,
      needsAll: true,
      calledAt: null,
    };
  });
}

function remembered(ask: (agentId: string) => boolean): (agentId: string) => boolean {
  const known = new Map<string, boolean>();
  return (agentId) => {
    const answer = known.get(agentId) ?? ask(agentId);
    known.set(agentId, answer);
    return answer;
  };
}

const older = (a: string, b: string): string => (a < b ? a : b);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

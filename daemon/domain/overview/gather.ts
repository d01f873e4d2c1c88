/**
 * Owns gathering who waits for whom in a room now, by all the ways in which agents wait: calls that are being answered, requests
 * without a reply, open barriers, and commands. Agents wait in short calls, one after another: what they wait for goes on between.
 */
import { MOST_WAITS, type Wait } from "../../../shared/api/overview.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { commandText, line } from "../../../shared/timeline/words.ts";
import { type BarrierRow, missingOf, openBarriers } from "../barriers/index.ts";
import { type OpenRequest, openRequests } from "../fabric/index.ts";
import type { OverviewDeps } from "./deps.ts";

/** A wait before it is shown. */
export interface Gathered extends Wait {
  /** Whether it is over only when each of those is done; else one of them is enough. */
  needsAll: boolean;
}

/** Recipients of requests that are looked at. */
const MOST_LOOKED_AT = 4 * MOST_WAITS;
/** Each may have a thousand agents. */
const MOST_BARRIERS = 256;

/** The oldest first, and whether some were not looked at. */
export function gather(deps: OverviewDeps, roomUid: RoomUid): { waits: Gathered[]; truncated: boolean } {
  const requests = openRequests(deps.queries, roomUid, MOST_LOOKED_AT + 1);
  const barriers = openBarriers(deps.queries, roomUid, MOST_BARRIERS + 1);
  const found = new Map<string, Gathered>();
  for (const wait of [
    ...replies(deps, roomUid, requests.slice(0, MOST_LOOKED_AT)),
    ...arrivals(deps, roomUid, barriers.slice(0, MOST_BARRIERS)),
    ...commands(deps, roomUid),
    ...held(deps, roomUid),
  ]) {
    const key = JSON.stringify([wait.agent_id, wait.type, wait.id]);
    found.set(key, together(found.get(key), wait));
  }
  const waits = [...found.values()].sort((a, b) => compare(a.since, b.since) || compare(a.agent_id, b.agent_id));
  return { waits, truncated: requests.length > MOST_LOOKED_AT || barriers.length > MOST_BARRIERS };
}

/** What a call waits for that is known by itself is one wait, as old as the older. */
function together(known: Gathered | undefined, wait: Gathered): Gathered {
  if (!known) return wait;
  const older = known.since < wait.since ? known : wait;
  return { ...known, since: older.since, held: known.held || wait.held };
}

/** Calls that are being answered. */
function held({ agents }: OverviewDeps, roomUid: RoomUid): Gathered[] {
  return agents.waits.all(roomUid).flatMap((wait) => {
    const { type, id } = wait.shown;
    const rest = { type, id, on: [...wait.on()], since: wait.since, held: true, about: ABOUT[type], needsAll: true };
    return wait.agents.map((agent_id) => ({ agent_id, ...rest }));
  });
}

const ABOUT = { reply: "request", barrier: "barrier", inbox: "messages" } as const;

/** Requests without a reply: neither who asked nor who is asked may be gone. */
function replies({ agents }: OverviewDeps, roomUid: RoomUid, requests: readonly OpenRequest[]): Gathered[] {
  const asked = new Map<string, Gathered>();
  const isGone = remembered((agentId) => agents.isGone(roomUid, agentId));
  for (const { message_id, source, recipient, topic, created_at } of requests) {
    if (isGone(source) || isGone(recipient)) continue;
    const known = asked.get(message_id);
    if (known) {
      known.on.push(recipient);
      known.needsAll = topic === null;
      continue;
    }
    const about = topic === null ? "request" : `request to topic ${topic}`;
    const rest = { since: created_at, held: false, about: line(about), needsAll: true };
    asked.set(message_id, { agent_id: source, type: "reply", id: message_id, on: [recipient], ...rest });
  }
  return [...asked.values()];
}

/** Who has arrived waits for who is missing: participants, or where none are named all agents of the room. */
function arrivals({ agents }: OverviewDeps, roomUid: RoomUid, barriers: readonly BarrierRow[]): Gathered[] {
  const isGone = remembered((agentId) => agents.isGone(roomUid, agentId));
  let everyone: string[] | undefined;
  return barriers.flatMap((row) => {
    const { barrier_id, generation, parties, arrived, opened_at } = row;
    everyone ??= row.participants ? undefined : agents.all(roomUid);
    const on = row.participants ? missingOf(row) : (everyone ?? []).filter((each) => !arrived.includes(each));
    const needsAll = on.length <= parties - arrived.length;
    const about = `generation ${generation}, ${arrived.length} of ${parties} arrived`;
    const rest = { on, since: opened_at, held: false, about, needsAll };
    return arrived
      .filter((agentId) => !isGone(agentId))
      .map((agent_id) => ({ agent_id, type: "barrier" as const, id: barrier_id, ...rest }));
  });
}

function commands({ sandboxes }: OverviewDeps, roomUid: RoomUid): Gathered[] {
  return sandboxes.going(roomUid).commands.map(({ agent_id, exec_id, argv, since }) => {
    const about = line(argv === null ? "command" : commandText(argv));
    return { agent_id, type: "command", id: exec_id, on: [], since, held: false, about, needsAll: true };
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

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

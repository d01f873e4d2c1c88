/** The state of a room's barriers in a checkpoint or backup file, and the validation of such a file from outside. */
import { Type } from "@sinclair/typebox";
import {
  BARRIER_STATES,
  MAX_PARTIES,
  MAX_ROOM_BARRIERS,
  MAX_ROOM_BARRIERS_BYTES,
} from "../../../shared/api/barriers.ts";
import { MAX_ROOM_AGENTS } from "../../../shared/api/fabric.ts";
import { AGENT_PATTERN, NAME_PATTERN } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Origin, Rows } from "../../db/branch.ts";
import {
  accept,
  acceptRows,
  type Cells,
  CLOCKS_APART_MS,
  isCount,
  isJson,
  isMomentBy,
  isOneOf,
  isText,
  jsonOf,
  type NamedCells,
  onlyOnce,
  orNull,
  UntrustedRows,
} from "../../db/untrusted-rows.ts";
import { KEPT_GENERATIONS } from "./state.ts";
import { bytesOf } from "./store.ts";
import { barriers } from "./table.ts";

/** The barriers in a checkpoint. */
export interface BarriersState {
  barriers: Rows;
  /** Agents that were gone while a barrier still waited for them: it is broken when the state is put into a room. */
  gone: string[];
}

/** The generation that was opened last, and the older ones that are retained. */
const MAX_GENERATIONS = KEPT_GENERATIONS + 1;
const MAX_ROWS = MAX_GENERATIONS * MAX_ROOM_BARRIERS;

const namesIn = (cell: NamedCells[string] | undefined) => (jsonOf(cell ?? null) as string[] | undefined) ?? null;

const agent = Type.String({ pattern: AGENT_PATTERN });
const isList = isJson(Type.Array(agent, { maxItems: MAX_PARTIES }));
const isUnique = (names: readonly string[]) => new Set(names).size === names.length;
const isParties = (cell: NamedCells[string]) => isList(cell) && isUnique(namesIn(cell) ?? []);

const cellsBy = (latestMs: number): Cells => ({
  barrier_id: isText(new RegExp(NAME_PATTERN)),
  generation: isCount(1, 2 ** 50),
  state: isOneOf(BARRIER_STATES),
  parties: isCount(1, MAX_PARTIES),
  participants: orNull(isParties),
  arrived: isParties,
  dead: isParties,
  opened_at: isMomentBy(latestMs),
  ended_at: orNull(isMomentBy(latestMs)),
});

const state = Type.Object(
  { barriers: Type.Unknown(), gone: Type.Array(agent, { maxItems: MAX_ROOM_AGENTS }) },
  { additionalProperties: false },
);

/** Breaks the barriers that wait for agents that are gone: the returned `gone` is empty. Throws Foreign. */
export async function acceptBarriers(given: unknown, { takenAtMs }: Pick<Origin, "takenAtMs">): Promise<BarriersState> {
  const accepted = accept(state, given, "barriers");
  if (!isUnique(accepted.gone)) throw new UntrustedRows("it lists a gone agent twice");
  const removedAgents = new Set(accepted.gone);
  const notWaitedFor = new Set(accepted.gone);
  const once = onlyOnce("barriers");
  const generations = new Generations();
  let bytes = 0;
  const rows = await acceptRows(barriers, accepted.barriers, {
    ...{ cells: cellsBy(takenAtMs + CLOCKS_APART_MS), most: MAX_ROWS },
    each: (row) => {
      once(`${row.barrier_id} ${row.generation}`);
      generations.add(row);
      const participants = namesIn(row.participants);
      bytes += bytesOf({ participants, parties: Number(row.parties) });
      if (bytes > MAX_ROOM_BARRIERS_BYTES) throw new UntrustedRows("its barriers exceed a room's limit");
      requireArrivals(row, participants);
      if (row.state !== "waiting") return undefined;
      const dead = participants?.filter((agentId) => removedAgents.has(agentId)) ?? [];
      for (const agentId of dead) notWaitedFor.delete(agentId);
      return dead.length > 0 ? { state: "broken", dead: JSON.stringify(dead), ended_at: now() } : undefined;
    },
  });
  generations.requireNewest();
  if (notWaitedFor.size > 0) throw new UntrustedRows("it lists a gone agent that none of its barriers waits for");
  return { barriers: rows, gone: [] };
}

/** Arrivals must be participants; a barrier is released by the last of its parties, and has an end time unless it is waiting. */
function requireArrivals({ state, parties, arrived, ended_at }: NamedCells, participants: string[] | null): void {
  const there = namesIn(arrived) ?? [];
  const most = Number(parties);
  const known = participants && new Set(participants);
  const isWaiting = state === "waiting";
  const isOne =
    there.length <= (isWaiting ? most - 1 : most) &&
    (known === null || (most <= known.size && there.every((agentId) => known.has(agentId)))) &&
    (ended_at === null) === isWaiting;
  if (!isOne) throw new UntrustedRows("one of its barriers has impossible arrivals");
}

/** Per barrier: the number of its generations, the newest of all, and the waiting one. */
class Generations {
  readonly #of = new Map<unknown, { count: number; newest: number; waiting: number | null }>();

  /** Throws Foreign if there are more than a room retains. */
  add({ barrier_id, generation, state }: NamedCells): void {
    const number = Number(generation);
    const its = this.#of.get(barrier_id) ?? { count: 0, newest: 0, waiting: null };
    this.#of.set(barrier_id, its);
    its.count++;
    its.newest = Math.max(its.newest, number);
    if (this.#of.size > MAX_ROOM_BARRIERS) throw new UntrustedRows("it has more barriers than a room's limit");
    if (its.count > MAX_GENERATIONS) throw new UntrustedRows("one of its barriers has too many generations");
    if (state !== "waiting") return;
    if (its.waiting !== null) throw notNewest();
    its.waiting = number;
  }

  /** Throws Foreign if a generation other than the newest is waiting. */
  requireNewest(): void {
    for (const { newest, waiting } of this.#of.values()) if (waiting !== null && waiting < newest) throw notNewest();
  }
}

const notNewest = () => new UntrustedRows("one of its barriers waits in a generation that is not its newest");

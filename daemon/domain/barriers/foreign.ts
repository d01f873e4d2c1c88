/** Owns what of a room's barriers goes into a checkpoint or a file, and what such a file from outside may say of them. */
import { Type } from "@sinclair/typebox";
import { BARRIER_STATES, MAX_PARTIES, MAX_ROOM_BARRIERS } from "../../../shared/api/barriers.ts";
import { MAX_ROOM_AGENTS } from "../../../shared/api/fabric.ts";
import { AGENT_PATTERN, NAME_PATTERN } from "../../../shared/ids.ts";
import type { Rows } from "../../db/branch.ts";
import {
  accept,
  acceptRows,
  type Cells,
  isCount,
  isJson,
  isMoment,
  isOneOf,
  isText,
  onlyOnce,
  orNull,
} from "../../db/foreign.ts";
import { barriers } from "./table.ts";

/** What a checkpoint has of them. */
export interface BarriersState {
  barriers: Rows;
  /** Agents that were gone though a barrier still waited for them: it is broken where it is put. */
  gone: string[];
}

/** Of each some generations are kept (arrive.ts). */
const MOST_ROWS = 20 * MAX_ROOM_BARRIERS;

const agent = Type.String({ pattern: AGENT_PATTERN });
const isParties = isJson(Type.Array(agent, { maxItems: MAX_PARTIES }));

const CELLS: Cells = {
  barrier_id: isText(new RegExp(NAME_PATTERN)),
  generation: isCount(1, 2 ** 50),
  state: isOneOf(BARRIER_STATES),
  parties: isCount(1, MAX_PARTIES),
  participants: orNull(isParties),
  arrived: isParties,
  dead: isParties,
  opened_at: isMoment,
  ended_at: orNull(isMoment),
};

const state = Type.Object(
  { barriers: Type.Unknown(), gone: Type.Array(agent, { maxItems: MAX_ROOM_AGENTS }) },
  { additionalProperties: false },
);

export async function acceptBarriers(given: unknown): Promise<BarriersState> {
  const { gone, barriers: rows } = accept(state, given, "barriers");
  const once = onlyOnce("barriers");
  const each = { each: ({ barrier_id, generation }: Record<string, unknown>) => once(`${barrier_id} ${generation}`) };
  return { barriers: await acceptRows(barriers, rows, { cells: CELLS, most: MOST_ROWS, ...each }), gone };
}

/** The state of a room's agents in a checkpoint or backup file, and the validation of such a file from outside. */
import { Type } from "@sinclair/typebox";
import { MAX_ROOM_AGENTS, MAX_ROOM_TOPICS, MAX_TOPICS, SUBSCRIPTION_PATTERN } from "../../../shared/api/fabric.ts";
import { AGENT_PATTERN } from "../../../shared/ids.ts";
import type { Origin, Rows } from "../../db/branch.ts";
import {
  accept,
  acceptRows,
  type Cells,
  CLOCKS_APART_MS,
  isJson,
  isMomentBy,
  isText,
  jsonOf,
  onlyOnce,
  UntrustedRows,
} from "../../db/untrusted-rows.ts";
import { agents } from "./table.ts";

/** The agents in a checkpoint. */
export interface AgentsState {
  agents: Rows;
  /** Names of the agents with a gone sandbox. */
  gone: string[];
}

const topics = Type.Array(Type.String({ pattern: SUBSCRIPTION_PATTERN, maxLength: 256 }), { maxItems: MAX_TOPICS });

const cellsBy = (latestMs: number): Cells => ({
  agent_id: isText(new RegExp(AGENT_PATTERN)),
  topics: isJson(topics),
  last_seen_at: isMomentBy(latestMs),
});

const state = Type.Object(
  { agents: Type.Unknown(), gone: Type.Array(Type.String({ pattern: AGENT_PATTERN }), { maxItems: MAX_ROOM_AGENTS }) },
  { additionalProperties: false },
);

export async function acceptAgents(given: unknown, { takenAtMs }: Pick<Origin, "takenAtMs">): Promise<AgentsState> {
  const accepted = accept(state, given, "agents");
  const once = onlyOnce("agents");
  let subscribed = 0;
  const rows = await acceptRows(agents, accepted.agents, {
    ...{ cells: cellsBy(takenAtMs + CLOCKS_APART_MS), most: MAX_ROOM_AGENTS },
    each: ({ agent_id, topics: own }) => {
      once(agent_id);
      subscribed += (jsonOf(own ?? null) as string[]).length;
      return undefined;
    },
  });
  if (subscribed > MAX_ROOM_TOPICS)
    throw new UntrustedRows("its agents have more topics than those of a room may have");
  return { agents: rows, gone: accepted.gone };
}

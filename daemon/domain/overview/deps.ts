/** What the overview of a room needs of others. */
import type { FindRoom } from "../../core/room-target.ts";
import type { Queries } from "../../db/client.ts";
import type { Agents } from "../agents/index.ts";
import type { Sandboxes } from "../sandboxes/index.ts";

export interface OverviewDeps {
  queries: Queries;
  findRoom: FindRoom;
  agents: Pick<Agents, "waits" | "all" | "isGone">;
  sandboxes: Pick<Sandboxes, "going">;
}

import type { RoomUid } from "../../../shared/ids.ts";
import type { Database } from "../../db/transact.ts";

/** An agent's newest sandbox, as far as agents need it. */
export interface AgentSandbox {
  sandbox_id: string;
  agent_id: string;
  state: string;
  fabric_attached: boolean;
}

export interface AgentsDeps {
  database: Pick<Database, "commit" | "queries" | "undo">;
  /** The newest sandbox of an agent, destroyed ones included. */
  sandboxOf(roomUid: RoomUid, agentId: string): AgentSandbox | null;
  /** The newest sandbox of every agent that has a live one. */
  liveSandboxes(roomUid: RoomUid): AgentSandbox[];
  /** Called when a wait has started or ended. */
  waitsChanged(roomUid: RoomUid): void;
}

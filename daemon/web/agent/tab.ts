/** Props of an agent's pages. */
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import type { SandboxRecord } from "../../../shared/api/sandboxes.ts";
import { part } from "../data/api.ts";

export interface TabProps {
  room: RoomRecord;
  agentId: string;
  /** The live one, otherwise the last destroyed one; null if none is known. */
  sandbox: SandboxRecord | null;
}

/** API path of the sandbox. By id, it names this sandbox even if the agent has another one by now. */
export const sandboxPath = ({ room_id, sandbox_id }: SandboxRecord) =>
  `/v1/rooms/${part(room_id)}/sandboxes/${part(sandbox_id)}`;

/** Whether the sandbox exists, so that its API can be called. */
export const isThere = (sandbox: SandboxRecord | null): sandbox is SandboxRecord =>
  sandbox !== null && sandbox.state !== "destroyed";

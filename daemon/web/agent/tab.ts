/** Owns what a page of an agent is given. */
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import type { SandboxRecord } from "../../../shared/api/sandboxes.ts";
import { part } from "../data/api.ts";

export interface TabProps {
  room: RoomRecord;
  agentId: string;
  /** The live one, else the last that ended; null where none is known. */
  sandbox: SandboxRecord | null;
}

/** Of the API. By its id it is this one, also when the agent has got another. */
export const sandboxPath = ({ room_id, sandbox_id }: SandboxRecord) =>
  `/v1/rooms/${part(room_id)}/sandboxes/${part(sandbox_id)}`;

/** Whether there is anything to ask of it. */
export const isThere = (sandbox: SandboxRecord | null): sandbox is SandboxRecord =>
  sandbox !== null && sandbox.state !== "destroyed";

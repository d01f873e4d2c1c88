/** Defaults for arguments that a model leaves out, if one value is obvious. */
import { randomBytes } from "node:crypto";
import { DRIVE_MOUNT } from "../../../shared/api/drive.ts";
import type { Tool } from "../../../shared/api/mcp/tool.ts";
import type { KeyId } from "../../../shared/ids.ts";
import type { Arguments } from "./call.ts";
import { nameOf } from "./names.ts";

/** The sender of messages if the key is bound to no agent. */
const OPERATOR = "operator";
const SENDS = ["agent_send", "agent_request", "agent_fanout"];
/** Directories inside a guest: a file tool's path below them is still a path on the drive. */
const OF_GUEST = /^\/(root|home|tmp|etc|usr|var|opt|srv|app|workspace|code)(\/|$)/;

/** Adds missing arguments to `given`, and returns a note about each. */
export function fillIn(
  { name }: Pick<Tool, "name">,
  given: Arguments,
  { agent_id, first_key_id }: { agent_id: string | null; first_key_id: KeyId },
): string[] {
  if (name === "room_create" && given.room_id === undefined) {
    const key = given.idempotency_key;
    const random = randomBytes(3).toString("hex");
    const same = typeof key === "string" ? nameOf("msg", key, [first_key_id, name]).slice(-12) : random;
    given.room_id = `room-${same}`;
    return ["room_id was generated"];
  }
  if (SENDS.includes(name) && given.source === undefined && agent_id === null) {
    given.source = OPERATOR;
    return [`source is ${OPERATOR}`];
  }
  if (name === "fs_write" && typeof given.path === "string" && OF_GUEST.test(given.path)) {
    return [`the file is on the drive: in sandboxes it is ${DRIVE_MOUNT}${given.path}`];
  }
  return [];
}

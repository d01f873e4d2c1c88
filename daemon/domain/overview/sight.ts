/** Owns which waits a caller sees. Pure. */
import type { Caller } from "../../core/operation.ts";
import type { Gathered } from "./gather.ts";

/** An agent sees what it waits for and who waits for it; commands see who may run them, or read what was run. */
export function maySee({ agent_id, scopes, session }: Caller, { agent_id: waits, on, type }: Gathered): boolean {
  if (agent_id !== null) return waits === agent_id || on.includes(agent_id);
  return type !== "command" || session !== undefined || scopes.includes("exec") || scopes.includes("audit:read");
}

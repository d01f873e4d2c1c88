/** Owns which waits a caller sees. Pure. */
import type { Caller } from "../../core/operation.ts";
import type { Gathered } from "./gather.ts";

/** An agent sees what it waits for and who waits for it; commands see who may run them, or read what was run. */
export function maySee(caller: Caller, { agent_id: waits, on, type }: Gathered): boolean {
  const { agent_id } = caller;
  if (agent_id !== null) return waits === agent_id || on.includes(agent_id);
  return type !== "command" || seesCommands(caller);
}

const seesCommands = ({ scopes, session }: Caller): boolean =>
  session !== undefined || scopes.includes("exec") || scopes.includes("audit:read");

/** The same for callers that see the same of a room. */
export function sightOf(caller: Caller): string {
  if (caller.agent_id !== null) return `agent ${caller.agent_id}`;
  return seesCommands(caller) ? "all" : "all but commands";
}

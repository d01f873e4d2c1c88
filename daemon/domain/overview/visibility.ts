/** The agents' waits that a caller may see. Pure. */
import type { Caller } from "../../core/call/operation.ts";
import type { Gathered } from "./gather.ts";

/** An agent sees its own waits and waits for it; commands are visible to callers that may run them or read the audit. */
export function maySee(caller: Caller, { agent_id: waits, on, type }: Gathered): boolean {
  const { agent_id } = caller;
  if (agent_id !== null) return waits === agent_id || on.includes(agent_id);
  return type !== "command" || seesCommands(caller);
}

const seesCommands = ({ scopes, session }: Caller): boolean =>
  session !== undefined || scopes.includes("exec") || scopes.includes("audit:read");

/** Cache key: equal for callers with the same view of a room. */
export function visibilityOf(caller: Caller): string {
  if (caller.agent_id !== null) return `agent ${caller.agent_id}`;
  return seesCommands(caller) ? "all" : "all but commands";
}

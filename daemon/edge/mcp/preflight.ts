/** Checks health and usage before an MCP session's first change, if the client has not done so. */
import { operations } from "../../../shared/api/operations.ts";
import type { Arguments, ToolCall } from "./call.ts";
import { compact } from "./compact.ts";
import type { Session } from "./sessions.ts";

/** Checks before the call, unless the session has checked; the session keeps the findings for its next success. */
export async function preflight(call: ToolCall, session: Session): Promise<void> {
  const { name, hints } = call.tool;
  if (name === "health" || name === "usage") session[name] = true;
  if (hints.readOnlyHint) return;
  const unseen = (["health", "usage"] as const).filter((each) => !session[each]);
  if (unseen.length === 0) return;
  for (const each of unseen) session[each] = true;
  const seen = await Promise.all(
    unseen.map(async (each) => {
      const reply = await call.ask(operations[each], each === "usage" ? { org_id: "self" } : {});
      if (reply.kind === "late") return [];
      if (reply.kind === "problem") return [[each, { code: reply.problem.code }]];
      return [[each, each === "health" ? healthIn(reply.body) : usageIn(reply.body)]];
    }),
  );
  session.looked = { ...session.looked, ...Object.fromEntries(seen.flat()) };
}

/** The check results for the answer of a successful call; null if they were shown before. */
export function takeLooked(session: Session): Arguments | null {
  const { looked } = session;
  session.looked = {};
  return Object.keys(looked).length > 0 ? looked : null;
}

function healthIn({ status, topology, acceleration, capacity }: Arguments): Arguments {
  return compact({ status, topology, acceleration, capacity });
}

function usageIn(body: Arguments): Arguments {
  const { org_id, plan, rooms, sandboxes, memory_mib, can_create, warnings } = body;
  const some = Array.isArray(warnings) ? warnings.slice(0, 1).map((text) => String(text).slice(0, 120)) : [];
  const caps = { rooms: capOf(rooms), sandboxes: capOf(sandboxes), memory_mib: capOf(memory_mib) };
  return { ...compact({ org_id, plan, ...caps, warnings: some }), ...(can_create ? { can_create } : {}) };
}

/** `2 of 10` */
function capOf(used: unknown): string {
  const { active, allocated, hard_cap } = Object(used);
  return `${active ?? allocated} of ${hard_cap}`;
}

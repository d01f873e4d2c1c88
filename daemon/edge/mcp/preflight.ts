/** Checks health and usage before an MCP session's first change, if the client has not done so. */
import { operations } from "../../../shared/api/operations.ts";
import { answerOf, structured } from "./answer.ts";
import type { Arguments, ToolCall } from "./call.ts";
import type { Session } from "./sessions.ts";

/** What was seen, for the answer; null when there was no need. What cannot be looked at keeps nothing from being done. */
export async function preflight(call: ToolCall, session: Session): Promise<Arguments | null> {
  const { name, hints } = call.tool;
  if (name === "health" || name === "usage") session[name] = true;
  if (hints.readOnlyHint) return null;
  const unseen = (["health", "usage"] as const).filter((each) => !session[each]);
  if (unseen.length === 0) return null;
  for (const each of unseen) session[each] = true;
  const seen = await Promise.all(
    unseen.map(async (each) => {
      const reply = await call.ask(operations[each], each === "usage" ? { org_id: "self" } : {});
      if (reply.kind === "late") return [];
      return [[each, reply.kind === "done" ? reply.body : structured(answerOf(reply))]];
    }),
  );
  return Object.fromEntries(seen.flat());
}

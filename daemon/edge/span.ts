/** Owns what a call's span says of it: where it was, who asked, what came of it; nothing that was sent or answered. */
import type { Attributes } from "../core/traces.ts";
import type { Outcome, Walk } from "./walk.ts";

/** Facts of records that say what the call was about, by their names there. */
const FACTS = ["exec_id", "message_id", "seq", "barrier_id", "generation", "exit_code", "timed_out", "path"] as const;

export function spanOf(
  { call, request }: Pick<Walk, "call" | "request">,
  reply: Outcome,
): { attributes: Attributes; problem: string | null } {
  const { caller, audit, source } = call;
  const details = Object(audit.details) as Record<string, unknown>;
  const facts = FACTS.flatMap((name) => {
    const value = details[name];
    return isPlain(value) ? [[`roomd.${name}`, value] as const] : [];
  });
  return {
    attributes: {
      "roomd.door": source,
      "roomd.request_id": call.request_id,
      "roomd.org_id": caller?.org_id,
      "roomd.room_id": audit.room_id ?? request.params.room_id,
      "roomd.agent_id": audit.agent_id,
      "roomd.sandbox_id": audit.sandbox_id,
      "http.response.status_code": reply.status,
      ...(reply.replayed ? { "roomd.replayed": true } : {}),
      ...Object.fromEntries(facts),
    },
    problem: reply.kind === "problem" ? reply.problem.code : null,
  };
}

const isPlain = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

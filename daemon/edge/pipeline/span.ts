/** Attributes of a call's span: place, caller, result; no content of request or response. */
import type { Source } from "../../../shared/api/audit.ts";
import type { SpanEnd } from "../../core/call/traces.ts";
import type { Outcome, RequestContext } from "./request-context.ts";

/** Facts of audit records that identify the call's target, by their names there. */
const FACTS = ["exec_id", "message_id", "seq", "barrier_id", "generation", "exit_code", "timed_out", "path"] as const;
const BY_HTTP: readonly Source[] = ["rest", "web", "vsock"];
/** Lower statuses are the caller's fault. */
const FAULT = 500;

export function callEnd(
  { call, operation, request }: Pick<RequestContext, "call" | "operation" | "request">,
  reply: Outcome,
): SpanEnd {
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
      ...(BY_HTTP.includes(source)
        ? {
            "http.request.method": operation.method,
            "http.route": operation.path,
            "http.response.status_code": reply.status,
          }
        : {}),
      ...(reply.replayed ? { "roomd.replayed": true } : {}),
      ...Object.fromEntries(facts),
    },
    problem: reply.kind === "problem" ? reply.problem.code : null,
    isFault: reply.status >= FAULT,
  };
}

const isPlain = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

/** Turns an error into the problem that every transport sends. Internal text is logged, never sent. */
import { errorKind, type Problem } from "../../../shared/api/errors.ts";
import type { Log } from "../../core/log.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { Outcome, RequestContext } from "./request-context.ts";

/** The response to a call that has failed. */
export function refusalOf({ request, effect }: RequestContext, failure: unknown, log: Log): Outcome {
  const error = ofWhoLeft(request.signal, failure);
  const problem = toProblem(error, request.request_id, log);
  // On a full disk a caller must know whether its request took effect anyway.
  const details = problem.status === 507 && effect ? { ...problem.details, ...effect } : problem.details;
  return {
    kind: "problem",
    status: problem.status,
    problem: { ...problem, details },
    retry_after_seconds: retryAfterOf(error, problem),
    replayed: false,
  };
}

/** Work for a disconnected caller is aborted by the signal, which is not a bug; any other error still is. */
function ofWhoLeft({ aborted, reason }: AbortSignal, error: unknown): unknown {
  if (!aborted || error instanceof ServiceError) return error;
  // An MCP client may give its own reason.
  const isEnded = error === reason || (error instanceof Error && error.name === "AbortError");
  return isEnded ? new ServiceError("caller_left", { cause: error }) : error;
}

export function toProblem(error: unknown, requestId: string, log: Log): Problem {
  const known = error instanceof ServiceError ? error : new ServiceError("internal", { cause: error });
  if (known.code === "internal" || known.options.cause !== undefined) {
    const level = known.code === "internal" ? "error" : "info";
    log[level]("request failed", {
      request_id: requestId,
      error: describeError(known),
      ...(known.code === "internal" && error instanceof Error ? { stack: error.stack } : {}),
    });
  }
  const { status, statusInPath, title, retryable, hint } = errorKind(known.code);
  const { detail, details, errors, inPath, hint: ownHint } = known.options;
  return {
    type: `urn:roomd:problem:${known.code}`,
    title,
    status: (inPath ? statusInPath : undefined) ?? status,
    detail: detail ?? `${title}.`,
    code: known.code,
    retryable: known.options.retryable ?? retryable ?? false,
    request_id: requestId,
    details: details ?? {},
    errors: errors ?? [],
    hint: ownHint ?? hint ?? null,
  };
}

/** Seconds after which a retryable problem is worth another try. */
export function retryAfterOf(error: unknown, problem: Problem): number | null {
  const known = error instanceof ServiceError ? error.options : {};
  if (known.retryable === false) return null;
  return known.retryAfterSeconds ?? errorKind(problem.code).retryAfterSeconds ?? null;
}

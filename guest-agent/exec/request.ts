/** Owns the check of an exec request: whatever the host sent, what comes out has the shape of ExecRequest. */
import type { ExecRequest } from "../../shared/agent-protocol/messages.ts";
import { isArgument, isEnvironment } from "./environment.ts";

/** setTimeout's own bound; a longer one would fire at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export class InvalidRequest extends Error {
  override name = "InvalidRequest";
}

/** Throws InvalidRequest. */
export function parseExecRequest(request: object): ExecRequest {
  const { exec_id, argv, cwd, env, user, timeout_ms, stdin } = request as Partial<Record<keyof ExecRequest, unknown>>;
  if (typeof exec_id !== "string") throw new InvalidRequest("exec_id must be a string");
  if (!Array.isArray(argv) || argv.length === 0 || !argv.every(isArgument)) {
    throw new InvalidRequest("argv must be one or more strings without NUL");
  }
  if (!isEnvironment(env)) throw new InvalidRequest("env must map names to strings without NUL");
  if (cwd !== null && !isArgument(cwd)) throw new InvalidRequest("cwd must be a string without NUL, or null");
  if (user !== null && typeof user !== "string") throw new InvalidRequest("user must be a string or null");
  if (typeof timeout_ms !== "number" || !(timeout_ms >= 1 && timeout_ms <= MAX_TIMEOUT_MS)) {
    throw new InvalidRequest(`timeout_ms must be 1 to ${MAX_TIMEOUT_MS}`);
  }
  if (typeof stdin !== "boolean") throw new InvalidRequest("stdin must be true or false");
  return { method: "exec", exec_id, argv, cwd, env, user, timeout_ms, stdin };
}

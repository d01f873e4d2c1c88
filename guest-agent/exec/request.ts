/** Validates execution requests of the host: the result has the declared shape. */
import {
  type ExecRequest,
  type ExecStartRequest,
  MAX_EXEC_TAG_CHARACTERS,
  NO_TIMEOUT_MS,
} from "../../shared/agent-protocol/messages.ts";
import { isArgument, isEnvironment } from "./environment.ts";

/** Limit of setTimeout, which fires immediately for a longer time. */
const MAX_TIMEOUT_MS = NO_TIMEOUT_MS;

export class InvalidRequest extends Error {
  override name = "InvalidRequest";
}

/** Throws InvalidRequest. */
export function parseExecRequest(request: object): ExecRequest {
  const given = request as Partial<Record<keyof ExecRequest, unknown>>;
  const { exec_id, argv, cwd, env, user, timeout_ms, unlimited = false, stdin } = given;
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
  if (typeof unlimited !== "boolean") throw new InvalidRequest("unlimited must be true or false");
  if (typeof stdin !== "boolean") throw new InvalidRequest("stdin must be true or false");
  return { method: "exec", exec_id, argv, cwd, env, user, timeout_ms, unlimited, stdin };
}

/** Throws InvalidRequest. */
export function parseStartRequest(
  request: object,
): ExecStartRequest & { tag: string; generated: boolean; brief: boolean } {
  const command = parseExecRequest(request);
  const {
    fingerprint,
    follow,
    tag = "",
    generated = false,
    brief = false,
  } = request as Partial<Record<keyof ExecStartRequest, unknown>>;
  if (typeof fingerprint !== "string") throw new InvalidRequest("fingerprint must be a string");
  if (typeof follow !== "boolean") throw new InvalidRequest("follow must be true or false");
  if (typeof generated !== "boolean") throw new InvalidRequest("generated must be true or false");
  if (typeof brief !== "boolean") throw new InvalidRequest("brief must be true or false");
  return { ...command, method: "exec_start", fingerprint, follow, generated, brief, tag: shortText("tag", tag) };
}

/** Throws InvalidRequest. */
export function shortText(name: string, value: unknown): string {
  if (typeof value === "string" && value.length <= MAX_EXEC_TAG_CHARACTERS) return value;
  throw new InvalidRequest(`${name} must be a string of at most ${MAX_EXEC_TAG_CHARACTERS} characters`);
}

/** Throws InvalidRequest. */
export function wholeNumber(name: string, value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new InvalidRequest(`${name} must be a whole number from 0 on`);
}

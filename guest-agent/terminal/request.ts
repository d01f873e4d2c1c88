/** Validates terminal requests of the host: the result has the shape of the message. */
import type {
  TerminalAttachRequest,
  TerminalOpenRequest,
  TerminalResize,
  TerminalWatchRequest,
} from "../../shared/agent-protocol/messages.ts";
import { isArgument, isEnvironment } from "../exec/environment.ts";
import { InvalidRequest } from "../exec/request.ts";

/** The kernel's own numbers are 16 bits; no screen is larger than this. */
const MAX_ROWS_OR_COLS = 1000;

/** Throws InvalidRequest. */
export function parseOpen(request: object): TerminalOpenRequest {
  const fields = request as Partial<Record<keyof TerminalOpenRequest, unknown>>;
  const { argv, cwd, env, user, term, rows, cols, detached_life_ms } = fields;
  if (argv !== null && !(Array.isArray(argv) && argv.length > 0 && argv.every(isArgument))) {
    throw new InvalidRequest("argv must be one or more strings without NUL, or null");
  }
  if (!isEnvironment(env)) throw new InvalidRequest("env must map names to strings without NUL");
  if (cwd !== null && !isArgument(cwd)) throw new InvalidRequest("cwd must be a string without NUL, or null");
  if (user !== null && typeof user !== "string") throw new InvalidRequest("user must be a string or null");
  if (!isArgument(term)) throw new InvalidRequest("term must be a string without NUL");
  if (!isSize(rows) || !isSize(cols)) throw new InvalidRequest(`rows and cols must be 1 to ${MAX_ROWS_OR_COLS}`);
  const open = { argv, cwd, env, user, term, rows, cols };
  const life = isLife(detached_life_ms) ? { detached_life_ms } : {};
  return { method: "terminal_open", terminal_id: parseId(request), ...open, ...life };
}

/** Throws InvalidRequest. */
export function parseAttach(request: object): TerminalAttachRequest {
  const { takeover } = request as Partial<Record<keyof TerminalAttachRequest, unknown>>;
  if (typeof takeover !== "boolean") throw new InvalidRequest("takeover must be true or false");
  return { method: "terminal_attach", terminal_id: parseId(request), since: sinceOf(request), takeover };
}

/** Throws InvalidRequest. */
export function parseWatch(request: object): TerminalWatchRequest {
  return { method: "terminal_watch", terminal_id: parseId(request), since: sinceOf(request) };
}

function sinceOf(request: object): number | null {
  const { since } = request as { since?: unknown };
  if (since !== null && !(Number.isSafeInteger(since) && Number(since) >= 0)) {
    throw new InvalidRequest("since must be an offset or null");
  }
  return since === null ? null : Number(since);
}

/** Throws InvalidRequest. */
export function parseId(request: object): string {
  const { terminal_id } = request as { terminal_id?: unknown };
  if (typeof terminal_id !== "string" || !/^\w{1,64}$/.test(terminal_id)) {
    throw new InvalidRequest("terminal_id must be a name");
  }
  return terminal_id;
}

/** Parses an event of the host on an attach stream; null if it is unknown to this agent. */
export function resizeOf(event: unknown): TerminalResize | null {
  if (typeof event !== "object" || event === null) return null;
  const { type, rows, cols } = event as Partial<Record<keyof TerminalResize, unknown>>;
  return type === "resize" && isSize(rows) && isSize(cols) ? { type, rows, cols } : null;
}

/** Whether the value is a lifetime in the range of a timer. */
function isLife(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) < 2 ** 31;
}

function isSize(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MAX_ROWS_OR_COLS;
}

/** Client of the room's API from within the guest. */

import { readTraceparent, TRACEPARENT, TRACEPARENT_VARIABLE, writeTraceparent } from "../../shared/traceparent.ts";

const PATH = `/v1/rooms/${encodeURIComponent(process.env.ROOMD_ROOM_ID ?? "")}`;
const AWAY_TRIES = 30;
const AWAY_PAUSE_MS = 500;

/** One sentence for the user of the command. */
export class RoomError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;
  constructor(detail: string, code: string, details: Record<string, unknown>, hint = "") {
    super(`${detail}${code && ` (${code})`}${hint && `\n${hint}`}`);
    this.code = code;
    this.details = details;
  }
}

export type Json = Record<string, unknown>;

/** The agent name of this sandbox. */
export const OWN_AGENT = process.env.ROOMD_AGENT_ID ?? "";

/** The trace of the execution in which this command was run; the calls continue it. */
const place = readTraceparent(process.env[TRACEPARENT_VARIABLE]);
const CONTINUES: Record<string, string> = place ? { [TRACEPARENT]: writeTraceparent(place) } : {};

/**
 * The bytes of an answer. While the host is briefly unavailable the call is retried: messages and arrivals have names by which a retry is
 * recognized.
 */
export async function send(method: string, path: string, body?: Json | Uint8Array<ArrayBuffer>): Promise<Response> {
  const url = process.env.ROOMD_URL;
  if (url === undefined) throw new RoomError("This sandbox is not attached to its room.", "", {});
  const isBytes = body instanceof Uint8Array;
  const type = { "content-type": isBytes ? "application/octet-stream" : "application/json" };
  const headers = { ...CONTINUES, ...(body === undefined ? {} : type) };
  const sent = body === undefined ? { headers } : { headers, body: isBytes ? body : JSON.stringify(body) };
  for (let tries = 1; ; tries++) {
    const response = await fetch(`${url}${PATH}${path}`, { method, ...sent });
    if (response.ok) return response;
    const problem = (await response.json().catch(() => ({}))) as Json;
    const away = problem.code === "not_ready" || problem.code === "shutting_down";
    if (!away || tries >= AWAY_TRIES) {
      const detail = String(problem.detail ?? `The room answered with status ${response.status}.`);
      throw new RoomError(
        detail,
        String(problem.code ?? ""),
        (problem.details ?? {}) as Json,
        String(problem.hint ?? ""),
      );
    }
    await Bun.sleep(AWAY_PAUSE_MS);
  }
}

export async function call(method: string, path: string, body?: Json): Promise<Json> {
  return (await (await send(method, path, body)).json()) as Json;
}

/** Prints an answer: as JSON if requested, otherwise as lines. */
export function print(answer: unknown, options: { json?: boolean }, lines: () => string[]): void {
  const text = options.json ? JSON.stringify(answer) : lines().join("\n");
  if (text !== "") process.stdout.write(`${text}\n`);
}

/** `-` is standard input. */
export async function textOf(text: string): Promise<string> {
  return text === "-" ? (await Bun.stdin.text()).replace(/\n$/, "") : text;
}

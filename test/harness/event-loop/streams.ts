/** A reader of an execution's stream, as a client reads it: line by line, after a given event, cancelled at any point. */
import type { Json, TestDaemon } from "../daemon.ts";

export interface StreamOptions {
  after?: number;
  follow?: boolean;
  /** Called with each event; false gives the stream up. */
  onEvent?(event: Json): boolean | undefined;
  signal?: AbortSignal;
}

export interface StreamEnd {
  events: Json[];
  /** Seq of the last event that had one; the next stream continues after it. */
  last: number;
}

export function executionsPath(room: string, sandbox: string): string {
  return `/v1/rooms/${room}/sandboxes/${sandbox}/executions`;
}

/** A command that prints as fast as it can, started once its stream is read; `ended` resolves to the length of its stream in bytes. */
export async function startFlood(daemon: TestDaemon, path: string, timeoutMs: number, flood = "yes") {
  const body = { command: `read _; exec ${flood}`, stdin_open: true, timeout_ms: timeoutMs };
  const { exec_id } = await daemon.ok("POST", path, body);
  const headers = { authorization: `Bearer ${daemon.apiKey}` };
  const response = await fetch(`${daemon.url}${path}/${exec_id}/stream`, { headers });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  await daemon.ok("POST", `${path}/${exec_id}/stdin`, { data_b64: "Cg==", eof: true });
  return { exec_id: String(exec_id), ended: lengthOf(response) };
}

async function lengthOf(response: Response): Promise<number> {
  let length = 0;
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) length += chunk.byteLength;
  } catch {
    // The sandbox, or the daemon, has ended.
  }
  return length;
}

/** Reads to the end of the stream, or until it breaks. */
export async function readStream(daemon: TestDaemon, path: string, options: StreamOptions = {}): Promise<StreamEnd> {
  const { after, follow, onEvent, signal } = options;
  const query = new URLSearchParams();
  if (after !== undefined) query.set("after", String(after));
  if (follow !== undefined) query.set("follow", String(follow));
  const response = await fetch(`${daemon.url}${path}/stream?${query}`, {
    headers: { authorization: `Bearer ${daemon.apiKey}` },
    ...(signal ? { signal } : {}),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const end: StreamEnd = { events: [], last: after ?? -1 };
  try {
    for await (const line of linesOf(response)) {
      const event = JSON.parse(line) as Json;
      if (typeof event.seq === "number") end.last = event.seq;
      end.events.push(event);
      if (onEvent?.(event) === false) break;
    }
  } catch (error) {
    // A daemon that is killed cuts its streams off.
    if (signal?.aborted) throw error;
  }
  return end;
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") throw new Error("a line was cut off");
}

/** The bytes of one stream in events. */
export function bytesOf(events: readonly Json[], type: "stdout" | "stderr"): Buffer {
  return Buffer.concat(
    events.filter((event) => event.type === type).map((event) => Buffer.from(event.data_b64, "base64")),
  );
}

/**
 * Owns an execution's output on this terminal: written as it comes, and followed on from the last event when the connection, or
 * the service, was away. Only an execution that says how it ended has ended.
 */
import { executionStream } from "../../shared/api/executions.ts";
import { CliError } from "./cli-error.ts";
import { send } from "./client.ts";
import { say, write } from "./output.ts";
import { type Progress, withProgress } from "./progress.ts";

/** How long to try again while nothing comes of it. */
const AWAY_MS = 120_000;
const PAUSE_MS = { first: 100, most: 2_000 } as const;
const NEWLINE = 0x0a;

/** An execution by its names. */
export interface ExecutionName {
  room_id: string;
  sandbox: string;
  exec_id: string;
}

export interface ExitEvent {
  exit_code: number | null;
  signal: string | null;
  timed_out: boolean;
  duration_ms: number;
}

interface Following {
  /** The last event that is known. */
  after: number;
  follow: boolean;
  /** What is said of it while nothing comes. */
  about: string;
  /** Gives it up. */
  signal?: AbortSignal;
}

/** Writes all output from after this event on; resolves with how the command ended, null when it was given up. */
export function followOutput(name: ExecutionName, following: Following): Promise<ExitEvent | null> {
  return withProgress(following.about, (progress) => writeOutput(name, following, progress));
}

async function writeOutput(
  name: ExecutionName,
  { after, follow, signal }: Following,
  progress: Progress,
): Promise<ExitEvent | null> {
  const show = async (stream: NodeJS.WriteStream, bytes: Uint8Array) => {
    // In a line that the command has not finished nothing of ours is written.
    if (stream.isTTY) progress.giveWay(bytes.at(-1) === NEWLINE);
    await write(stream, bytes);
  };
  let last = after;
  let quiet: { since: number; pauseMs: number } | null = null;
  for (;;) {
    try {
      const response = await send(executionStream, { ...name, after: last, follow });
      for await (const event of eventsOf(response, signal)) {
        quiet = null;
        if (typeof event.seq === "number") last = event.seq;
        if (event.type === "stdout") await show(process.stdout, Uint8Array.fromBase64(String(event.data_b64)));
        if (event.type === "stderr") await show(process.stderr, Uint8Array.fromBase64(String(event.data_b64)));
        if (event.type === "exit") return event as unknown as ExitEvent;
        if (event.type === "error" && event.retryable !== true) throw new CliError(String(event.detail));
      }
      if (!follow) return null;
    } catch (error) {
      if (!mayComeBack(error)) throw error;
    }
    if (signal?.aborted) return null;
    quiet ??= { since: performance.now(), pauseMs: PAUSE_MS.first };
    if (performance.now() - quiet.since > AWAY_MS) {
      throw new CliError(
        `The service has been unreachable for ${AWAY_MS / 1000} s. The command keeps running: roomd execution attach ${name.room_id} ${name.sandbox} ${name.exec_id} --after ${last}`,
      );
    }
    if (quiet.pauseMs === PAUSE_MS.first) progress.giveWay();
    if (quiet.pauseMs === PAUSE_MS.first) await say("roomd: the connection was lost, reconnecting");
    await Bun.sleep(quiet.pauseMs);
    quiet.pauseMs = Math.min(quiet.pauseMs * 2, PAUSE_MS.most);
  }
}

/** Whether asking again may help: nobody answered, or whoever did says so. */
export function mayComeBack(error: unknown): boolean {
  if (!(error instanceof CliError)) return true;
  const { code, retryable } = error.complaint;
  return code === undefined ? error.unreachable : retryable === true;
}

type StreamedEvent = Record<string, unknown>;

/** Events of a stream that comes as lines of JSON. */
export async function* eventsOf(response: Response, signal?: AbortSignal): AsyncGenerator<StreamedEvent> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const stop = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", stop, { once: true });
  const decoder = new TextDecoder();
  let rest = "";
  try {
    if (signal?.aborted) return;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + decoder.decode(part.value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as StreamedEvent;
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

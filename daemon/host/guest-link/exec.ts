/** Owns running one command in a guest, over its link: the host's half of guest-agent/exec. */
import { StreamError } from "../../../shared/agent-protocol/link.ts";
import {
  Channel,
  type ExecRequest,
  type ExecResult,
  type ExecStarted,
  StreamErrorCode,
} from "../../../shared/agent-protocol/messages.ts";
import { faultPoint } from "../../core/fault-points.ts";
import type { GuestLink } from "./handshake.ts";
import { afterGuestMs } from "./standstill.ts";

/** TERM, five seconds, KILL, and what a busy guest takes for them. */
const OVERDUE_MS = 30_000;

/** Takes a stream's bytes as they come; the guest waits while it does. */
export type Sink = (bytes: Uint8Array) => void | Promise<void>;

export interface ExecIo {
  /** Bytes for standard input, or null for none. */
  stdin: Uint8Array | null;
  stdout: Sink;
  stderr: Sink;
}

/** The link was lost, or the agent failed, under a running command. */
export class ExecLostError extends Error {
  override name = "ExecLostError";
  /** Whether the process is known to have begun. */
  readonly started: boolean;
  constructor(started: boolean, cause: unknown) {
    super("the guest did not answer to the end", { cause });
    this.started = started;
  }
}

/** Runs a command to its end. Rejects with StreamError when the agent refuses it, else with ExecLostError. */
export async function execInGuest(
  link: GuestLink,
  request: Omit<ExecRequest, "method">,
  io: ExecIo,
): Promise<ExecResult> {
  await faultPoint("exec.before");
  const stream = link.open({ method: "exec", ...request } as ExecRequest);
  let started = false;
  stream.hear((event) => {
    if ((event as Partial<ExecStarted>).type === "started") started = true;
  });
  const drain = async (channel: number, sink: Sink) => {
    for await (const bytes of stream.read(channel)) await sink(bytes);
  };
  const feed = async () => {
    if (io.stdin === null) return;
    if (io.stdin.byteLength > 0) await stream.write(Channel.stdin, io.stdin);
    stream.endChannel(Channel.stdin);
  };
  // The agent keeps the command's deadline; one that does not, by fault or by malice, holds nobody here for ever.
  const giveUp = afterGuestMs(link.standstill, request.timeout_ms + OVERDUE_MS, () =>
    stream.fail(StreamErrorCode.link_closed, "the guest agent let the command's deadline pass"),
  );
  try {
    await faultPoint("exec.sent");
    const [, , , result] = await Promise.all([
      feed(),
      drain(Channel.stdout, io.stdout),
      drain(Channel.stderr, io.stderr),
      stream.finished,
    ]);
    await faultPoint("exec.done");
    return readResult(result);
  } catch (error) {
    if (error instanceof StreamError && error.code !== "link_closed" && error.code !== "internal") throw error;
    throw new ExecLostError(started, error);
  } finally {
    giveUp();
  }
}

function readResult(value: unknown): ExecResult {
  const result = value as Partial<Record<keyof ExecResult, unknown>>;
  const moment = (ms: unknown) =>
    typeof ms === "number" && Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? ms : Date.now();
  return {
    exit_code: Number.isSafeInteger(result.exit_code) ? (result.exit_code as number) : null,
    signal: typeof result.signal === "string" ? result.signal.slice(0, 16) : null,
    timed_out: result.timed_out === true,
    started_at_ms: moment(result.started_at_ms),
    finished_at_ms: moment(result.finished_at_ms),
  };
}

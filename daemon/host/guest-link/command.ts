/**
 * Interactive commands: their streams as they arrive, input as it is typed, signals. For a command that must outlive its caller, see
 * exec.ts.
 */
import type { Stream } from "../../../shared/agent-protocol/link.ts";
import { Channel, type ExecRequest, NO_TIMEOUT_MS, StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import type { GuestLink } from "./handshake.ts";
import { afterGuestMs } from "./pausable-deadlines.ts";

const START_MS = 15_000;

export interface CommandEnd {
  exit_code: number | null;
  /** Signal name, e.g. `SIGKILL`, when a signal ended the command. */
  signal: string | null;
}

/** A running command. Backpressure: a slow reader makes it wait. */
export interface LiveCommand {
  /** The command's bytes, each once, until its end. */
  stdout: AsyncIterable<Uint8Array>;
  /** null if both are one stream, as on a screen. */
  stderr: AsyncIterable<Uint8Array> | null;
  /** Resolves once the bytes are on their way to standard input. */
  write(bytes: Uint8Array): Promise<void>;
  /** Standard input has ended. */
  endInput(): void;
  signal(name: string): void;
  resize(rows: number, cols: number): void;
  /** Resolves after all output was consumed. Rejects with StreamError when the guest is lost. */
  ended: Promise<CommandEnd>;
  /** The client is gone: the command gets a hangup, as from a broken line. */
  hangUp(): void;
}

/** Starts a command and stays attached to it. Rejects with StreamError when the agent refuses it. */
export async function startCommand(
  link: GuestLink,
  request: Pick<ExecRequest, "exec_id" | "argv" | "env">,
): Promise<LiveCommand> {
  const full: ExecRequest = {
    method: "exec",
    ...request,
    cwd: null,
    user: null,
    timeout_ms: NO_TIMEOUT_MS,
    unlimited: true,
    stdin: true,
  };
  const stream = link.open(full);
  await begun(link, stream);
  const ended = stream.finished.then(readEnd);
  ended.catch(() => {});
  return {
    stdout: stream.read(Channel.stdout),
    stderr: stream.read(Channel.stderr),
    write: async (bytes) => void (await stream.write(Channel.stdin, bytes)),
    endInput: () => stream.endChannel(Channel.stdin),
    signal: (signal) => stream.say({ type: "signal", signal }),
    resize: () => {},
    ended,
    hangUp: () => {
      if (stream.ended) return;
      stream.say({ type: "signal", signal: "SIGHUP" });
      // A stopped process receives it only when it is continued.
      stream.say({ type: "signal", signal: "SIGCONT" });
      // A process that ignores it continues, as it would anywhere; its output has no reader.
      stream.fail(StreamErrorCode.detached, "the client of the command has disconnected");
    },
  };
}

/** Resolves once the process exists, or cannot exist any more. */
async function begun(link: GuestLink, stream: Stream): Promise<void> {
  const started = Promise.withResolvers<void>();
  stream.hear((event) => {
    if (Object(event).type === "started") started.resolve();
  });
  const giveUp = afterGuestMs(link.standstill, START_MS, () =>
    stream.fail(StreamErrorCode.link_closed, "the guest agent did not start the command"),
  );
  try {
    await Promise.race([started.promise, stream.finished]);
  } finally {
    giveUp();
  }
}

function readEnd(value: unknown): CommandEnd {
  const { exit_code, signal } = Object(value) as Partial<Record<keyof CommandEnd, unknown>>;
  return {
    exit_code: Number.isSafeInteger(exit_code) ? (exit_code as number) : null,
    signal: typeof signal === "string" ? signal.slice(0, 16) : null,
  };
}

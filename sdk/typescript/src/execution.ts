/** A command in a sandbox: started under a name chosen by the client, so that it never runs twice, and followed until its end. */
import type { Client } from "./client.ts";
import { inTime, limited, unlessAborted } from "./deadline.ts";
import { RoomdError, UsageError } from "./errors.ts";
import type { Execution as ExecutionRecord, ExecutionStartRequest, ExitEvent } from "./generated/schemas.ts";
import { nameOf } from "./names.ts";
import { COMMAND_SPELLINGS, type CommandSpellings, checkOptions } from "./spellings.ts";
import type { EventOptions } from "./stream.ts";
import { CALL_OPTIONS, type CallOptions } from "./transport.ts";

/** A command line for /bin/sh, or a program with its arguments. */
export type Command = string | readonly string[];

/** Options of `exec` and `start`. */
export interface CommandOptions extends CallOptions, CommandSpellings {
  /** Working directory; the user's home by default. */
  cwd?: string;
  /** Environment variables, in addition to the sandbox's. */
  env?: Record<string, string>;
  /** User name or id; root by default. */
  user?: string;
  /** Standard input of the command. */
  stdin?: string | Uint8Array;
  /**
   * Time limit of the command in ms: SIGTERM to its process group, SIGKILL 5 s later. 10 minutes by default with `exec`, none with `start`;
   * 0: unlimited; at most 7 days.
   */
  timeoutMs?: number;
  /** Alias of `timeoutMs`. */
  commandTimeoutMs?: number;
  /**
   * Longest wait in ms; unlimited by default with `exec`. After this time TimeoutError is thrown, and the command continues under its
   * `execId`.
   */
  waitMs?: number;
  /** Maximum bytes of each stream in the result; 16 MiB by default. Callbacks receive the full output. */
  maxOutputBytes?: number;
  /** Directory of the drive where the full streams are saved as stdout and stderr. */
  outputTo?: string;
  /** Name of the run: a name never runs twice in the sandbox. */
  execId?: string;
  /** Called with standard output as it arrives. */
  onStdout?(text: string): void;
  /** Called with standard error as it arrives. */
  onStderr?(text: string): void;
  /** Called with the bytes of both streams in order. The command waits for the returned promise. */
  onOutput?(stream: "stdout" | "stderr", bytes: Uint8Array): void | Promise<void>;
  /** Whether `signal` ends the command as well, not only the waiting. */
  killOnAbort?: boolean;
}

/** The outcome of a command that has ended. */
export interface CommandResult {
  /** Name of the run. */
  execId: string;
  /** Null if a signal or the time limit ended the command. */
  exitCode: number | null;
  /** Name of the signal that ended the command, such as SIGKILL. */
  signal: string | null;
  /** Whether the time limit ended the command. */
  timedOut: boolean;
  /** Whether the kernel ended a process of the command because the sandbox ran out of memory. */
  oom: boolean;
  /** Duration of the run in ms. */
  durationMs: number;
  /** Standard output as text. */
  stdout: string;
  /** Standard error as text. */
  stderr: string;
  /** Standard output as bytes. */
  stdoutBytes: Uint8Array;
  /** Standard error as bytes. */
  stderrBytes: Uint8Array;
  /** Whether standard output was longer than `maxOutputBytes`. */
  stdoutTruncated: boolean;
  /** Whether standard error was longer than `maxOutputBytes`. */
  stderrTruncated: boolean;
}

/** A part of the output of a command. */
export interface OutputPart {
  /** The stream of the output part. */
  stream: "stdout" | "stderr";
  /** Its content. */
  bytes: Uint8Array;
  /** Position of the part in the output; `after` continues behind it. */
  seq: number;
}

/** Options of `output`. */
export interface OutputOptions extends EventOptions {
  /** Position to continue behind; by default the oldest stored output. */
  after?: number;
  /** Called if output was dropped before it was read; the rest follows. */
  onGap?(): void | Promise<void>;
}

/** How a command ended. */
export type CommandEnd = ExitEvent & {
  /** Whether output was dropped before it was read. */
  gap: boolean;
};

const COMMAND_OPTIONS: Record<Exclude<keyof CommandOptions, keyof CommandSpellings>, true> = {
  ...CALL_OPTIONS,
  cwd: true,
  env: true,
  user: true,
  stdin: true,
  commandTimeoutMs: true,
  maxOutputBytes: true,
  outputTo: true,
  execId: true,
  onStdout: true,
  onStderr: true,
  onOutput: true,
  killOnAbort: true,
};
const DEFAULT_COMMAND_MS = 600_000;
/** The longest time limit of a command. */
export const MAX_COMMAND_MS = 604_800_000;
const DEFAULT_OUTPUT_BYTES = 16 * 1024 * 1024;
/** Timeout for ending an unwanted command. */
const KILL_MS = 10_000;
const LATE = "The command has not ended in time and continues.";
const STDIN_PART_BYTES = 1024 * 1024;

/** A sandbox by its names. */
export interface SandboxName {
  room_id: string;
  sandbox: string;
}

/** A command that was started. */
export class Execution {
  /** Name of the run (`execId`). */
  readonly id: string;
  readonly #client: Client;
  readonly #name: SandboxName & { exec_id: string };
  /** Bytes of standard input so far, once earlier writes have finished; null if unknown, so that it has to be queried. */
  #written: Promise<number | null>;

  /** A command by its id. `stdinBytes`: number of bytes written to its standard input so far, if known. */
  constructor(client: Client, sandbox: SandboxName, id: string, stdinBytes: number | null = null) {
    this.id = id;
    this.#written = Promise.resolve(stdinBytes);
    this.#client = client;
    this.#name = { ...sandbox, exec_id: id };
  }

  /** Starts a command. Its standard input stays open unless `stdin` is given or `stdinOpen` is false. */
  static async start(
    client: Client,
    sandbox: SandboxName,
    command: Command,
    options: CommandOptions,
    stdinOpen = options.stdin === undefined,
  ): Promise<Execution> {
    checkCommandOptions("start", options);
    const { execId = nameOf(options.idempotencyKey), stdin, cwd, env, user, outputTo } = options;
    const { timeoutMs, commandTimeoutMs, ...limits } = options;
    const limitMs = timeoutMs ?? commandTimeoutMs ?? 0;
    const input = {
      ...(typeof command === "string" ? { command } : { argv: [...command] }),
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { env }),
      ...(user === undefined ? {} : { user }),
      ...(outputTo === undefined ? {} : { output_to: outputTo }),
      ...(typeof stdin === "string" ? { stdin } : {}),
      ...(stdin instanceof Uint8Array ? { stdin_b64: Buffer.from(stdin).toString("base64") } : {}),
      stdin_open: stdinOpen,
      exec_id: execId,
      timeout_ms: limitMs === Number.POSITIVE_INFINITY ? 0 : limitMs,
    } satisfies ExecutionStartRequest;
    await client.call("execution_start", { ...sandbox, ...input }, limits);
    return new Execution(client, sandbox, execId);
  }

  /** Runs a command, with `stdin` as its whole input, and waits for its end. */
  static async run(
    client: Client,
    sandbox: SandboxName,
    command: Command,
    options: CommandOptions,
  ): Promise<CommandResult> {
    checkCommandOptions("exec", options);
    const execId = options.execId ?? nameOf(options.idempotencyKey);
    const { timeoutMs: limitMs, commandTimeoutMs, ...waiting } = options;
    const timeoutMs = limitMs ?? commandTimeoutMs ?? DEFAULT_COMMAND_MS;
    try {
      return await inTime(waiting, LATE, async ({ killOnAbort: _, ...each }) => {
        const execution = await Execution.start(client, sandbox, command, { ...each, execId, timeoutMs }, false);
        return execution.wait(each);
      });
    } catch (error) {
      // It may have started, even if the answer was lost.
      if (options.signal?.aborted && options.killOnAbort) await new Execution(client, sandbox, execId).giveUp();
      throw error;
    }
  }

  /** Its record. */
  get(options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#client.call("execution_get", this.#name, options);
  }

  /** Yields the command's output until the end; returns the outcome. */
  async *output(options: OutputOptions = {}): AsyncGenerator<OutputPart, CommandEnd> {
    const end = yield* this.#read(true, options);
    if (end === null) throw new RoomdError("The stream ended before the command did.");
    return end;
  }

  /** Yields the command's output so far; returns the outcome, or null while it runs. */
  outputSoFar(options: OutputOptions = {}): AsyncGenerator<OutputPart, CommandEnd | null> {
    return this.#read(false, options);
  }

  async *#read(follow: boolean, options: OutputOptions): AsyncGenerator<OutputPart, CommandEnd | null> {
    const { given, done } = limited(options, LATE);
    const { waitMs: _wait, timeoutMs: _, ...each } = options;
    try {
      return yield* this.#parts(follow, { ...each, ...given });
    } finally {
      done();
    }
  }

  async *#parts(
    follow: boolean,
    { after: from = -1, onGap, ...options }: OutputOptions,
  ): AsyncGenerator<OutputPart, CommandEnd | null> {
    let after = from;
    let gap = false;
    for (;;) {
      try {
        for await (const event of this.#client.events("execution_stream", { ...this.#name, after, follow }, options)) {
          if (event.type === "exit") return { ...event, gap };
          after = event.seq;
          if (event.type === "stdout" || event.type === "stderr") {
            yield { stream: event.type, bytes: Buffer.from(event.data_b64, "base64"), seq: event.seq };
          }
        }
        return null;
      } catch (error) {
        if ((error as { code?: string }).code !== "history_gone") throw error;
        // The output was not read in time: continues with the retained part, and reports the gap.
        const { oldest_seq } = await this.get(options);
        if (oldest_seq - 1 <= after) throw error;
        after = oldest_seq - 1;
        gap = true;
        await onGap?.();
      }
    }
  }

  /** Waits for the command's end. A failed command is not an error: see `exitCode`. */
  async wait(
    options: Pick<
      CommandOptions,
      | "signal"
      | "waitMs"
      | "timeoutMs"
      | "retry"
      | "onStdout"
      | "onStderr"
      | "onOutput"
      | "killOnAbort"
      | "maxOutputBytes"
    > = {},
  ): Promise<CommandResult> {
    const most = options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES;
    const kept = { stdout: new OutputHead(most), stderr: new OutputHead(most) };
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const callbacks = { stdout: options.onStdout, stderr: options.onStderr };
    const output = this.output(options);
    try {
      for (let next = await output.next(); ; next = await output.next()) {
        if (next.done) return resultOf(this.id, next.value, kept);
        const { stream, bytes } = next.value;
        kept[stream].add(bytes);
        await options.onOutput?.(stream, bytes);
        callbacks[stream]?.(decoders[stream].decode(bytes, { stream: true }));
      }
    } catch (error) {
      if (options.signal?.aborted && options.killOnAbort) await this.giveUp();
      throw error;
    } finally {
      // Output no longer blocks the command.
      await output.return(undefined as never);
    }
  }

  /** Tries to end an abandoned command, for 10 s; errors are ignored. */
  async giveUp(): Promise<void> {
    await this.kill({ timeoutMs: KILL_MS }).catch(() => {});
  }

  /** Writes to the command's standard input, in the order of the calls. Retries deliver no byte twice. */
  write(data: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    return this.#stdin(Buffer.from(data as Uint8Array), false, options);
  }

  /** Ends its standard input. */
  end(options: CallOptions = {}): Promise<void> {
    return this.#stdin(Buffer.alloc(0), true, options);
  }

  /** Writes the whole standard input and waits for the command's end. If the source fails, the command is ended. */
  feed(parts: AsyncIterable<string | Uint8Array>, options: CallOptions = {}): Promise<CommandResult> {
    return inTime(options, LATE, (each) => this.#fed(parts, each));
  }

  async #fed(parts: AsyncIterable<string | Uint8Array>, options: CallOptions): Promise<CommandResult> {
    const ended = this.wait(options);
    // No unhandled rejection if the result is not awaited.
    ended.catch(() => {});
    const source = parts[Symbol.asyncIterator]();
    try {
      for (;;) {
        const part = await unlessAborted(source.next(), options.signal);
        if (part.done) break;
        await this.write(part.value, options);
      }
      await this.end(options);
    } catch (error) {
      // Does not wait for a slow source.
      source.return?.().catch(() => {});
      const left = await this.get({ timeoutMs: KILL_MS }).catch(() => ({ state: "running", exit_code: null }));
      const { state, exit_code } = left;
      // The command's own error explains why it read no more.
      if (state === "exited" && exit_code !== null && exit_code !== 0) return ended;
      await this.giveUp();
      throw error;
    }
    return ended;
  }

  #stdin(bytes: Buffer, eof: boolean, { idempotencyKey: _, ...options }: CallOptions): Promise<void> {
    const written = this.#written.then(async (known) => {
      let offset = known ?? (await this.get(options)).stdin_bytes;
      const parts = Math.max(1, Math.ceil(bytes.byteLength / STDIN_PART_BYTES));
      for (let part = 0; part < parts; part++) {
        const piece = bytes.subarray(part * STDIN_PART_BYTES, (part + 1) * STDIN_PART_BYTES);
        const input = { ...this.#name, data_b64: piece.toString("base64"), offset, eof: eof && part === parts - 1 };
        await this.#client.call("execution_stdin", input, options);
        offset += piece.byteLength;
      }
      return offset;
    });
    // After a failed write, the position of the input is queried.
    this.#written = written.catch(() => null);
    return written.then(() => {});
  }

  /** Sends a signal, such as "SIGINT", to the command's process group. */
  signal(signal: string, options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#client.call("execution_signal", { ...this.#name, signal: signal as "SIGINT" }, options);
  }

  /** Ends the command and its child processes; resolves when none is left. */
  kill(options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#client.call("execution_end", this.#name, options);
  }
}

/** The beginning of the output. */
class OutputHead {
  truncated = false;
  readonly #parts: Uint8Array[] = [];
  #left: number;

  constructor(most: number) {
    this.#left = most;
  }

  add(bytes: Uint8Array): void {
    this.truncated ||= bytes.byteLength > this.#left;
    if (this.#left > 0) this.#parts.push(bytes.subarray(0, this.#left));
    this.#left = Math.max(0, this.#left - bytes.byteLength);
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

function checkCommandOptions(method: string, options: CommandOptions): void {
  if (Array.isArray(options))
    throw new UsageError(`${method} takes arguments with the program: ${method}(["ls", "-l"]).`);
  checkOptions(method, options, COMMAND_OPTIONS, COMMAND_SPELLINGS);
}

function resultOf(execId: string, exit: CommandEnd, kept: Record<"stdout" | "stderr", OutputHead>): CommandResult {
  const stdoutBytes = kept.stdout.bytes();
  const stderrBytes = kept.stderr.bytes();
  return {
    execId,
    exitCode: exit.exit_code,
    signal: exit.signal,
    timedOut: exit.timed_out,
    oom: exit.oom === true,
    durationMs: exit.duration_ms,
    stdout: stdoutBytes.toString(),
    stderr: stderrBytes.toString(),
    stdoutBytes,
    stderrBytes,
    stdoutTruncated: exit.gap || kept.stdout.truncated,
    stderrTruncated: exit.gap || kept.stderr.truncated,
  };
}

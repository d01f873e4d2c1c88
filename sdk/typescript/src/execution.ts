/** Owns a command in a sandbox: begun by a name that is made here, so that it never runs twice, and followed until it says how it ended. */
import { randomUUID } from "node:crypto";
import type { Client } from "./client.ts";
import { RoomdError } from "./errors.ts";
import type { Execution as ExecutionRecord, ExecutionStartRequest, ExitEvent } from "./generated/schemas.ts";
import type { CallOptions } from "./transport.ts";

/** A command line for /bin/sh, or a program with its arguments. */
export type Command = string | readonly string[];

export interface CommandOptions extends CallOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** root if absent. */
  user?: string;
  stdin?: string | Uint8Array;
  /** After this time the command is killed; 10 minutes if absent, 60 at most. */
  commandTimeoutMs?: number;
  /** Drive directory where the full streams are saved as stdout and stderr. */
  outputTo?: string;
  /** The run's name: the same name never runs twice in the sandbox. */
  execId?: string;
  /** Hears of output as it comes. */
  onStdout?(text: string): void;
  onStderr?(text: string): void;
  /** As bytes, in the order in which they came. */
  onOutput?(stream: "stdout" | "stderr", bytes: Uint8Array): void;
  /** Whether the signal ends the command too, and not only the waiting for it. */
  killOnAbort?: boolean;
}

export interface CommandResult {
  execId: string;
  /** Null where a signal ended it. */
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  durationMs: number;
  stdout: string;
  stderr: string;
  stdoutBytes: Uint8Array;
  stderrBytes: Uint8Array;
}

export interface OutputPart {
  stream: "stdout" | "stderr";
  bytes: Uint8Array;
}

const DEFAULT_COMMAND_MS = 600_000;
const STDIN_PART_BYTES = 1024 * 1024;

/** A sandbox by its names. */
export interface SandboxName {
  room_id: string;
  sandbox: string;
}

/** A command that was begun, or that is known by its name. */
export class Execution {
  readonly id: string;
  readonly #client: Client;
  readonly #name: SandboxName & { exec_id: string };
  /** Bytes of standard input so far, once the writes before have ended; null where it has to be asked. */
  #written: Promise<number | null> = Promise.resolve(null);

  constructor(client: Client, sandbox: SandboxName, id: string) {
    this.id = id;
    this.#client = client;
    this.#name = { ...sandbox, exec_id: id };
  }

  static async start(
    client: Client,
    sandbox: SandboxName,
    command: Command,
    options: CommandOptions,
  ): Promise<Execution> {
    const { execId = `sdk-${randomUUID()}`, stdin, cwd, env, user, outputTo } = options;
    const wanted = {
      ...(typeof command === "string" ? { command } : { argv: [...command] }),
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { env }),
      ...(user === undefined ? {} : { user }),
      ...(outputTo === undefined ? {} : { output_to: outputTo }),
      ...(typeof stdin === "string" ? { stdin } : {}),
      ...(stdin instanceof Uint8Array ? { stdin_b64: Buffer.from(stdin).toString("base64") } : {}),
      exec_id: execId,
      timeout_ms: options.commandTimeoutMs ?? DEFAULT_COMMAND_MS,
    } satisfies ExecutionStartRequest;
    await client.call("execution_start", { ...sandbox, ...wanted }, options);
    return new Execution(client, sandbox, execId);
  }

  get(options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#client.call("execution_get", this.#name, options);
  }

  /** Everything that it writes, from its beginning as far as it is kept; returns how it ended. */
  async *output({ signal }: Pick<CallOptions, "signal"> = {}): AsyncGenerator<OutputPart, ExitEvent> {
    for await (const event of this.#client.events("execution_stream", this.#name, signal ? { signal } : {})) {
      if (event.type === "exit") return event;
      if (event.type === "stdout" || event.type === "stderr") {
        yield { stream: event.type, bytes: Buffer.from(event.data_b64, "base64") };
      }
    }
    throw new RoomdError("The stream ended before the command did.");
  }

  /** Waits until it has ended. A command that fails is no error: look at `exitCode`. */
  async wait(
    options: Pick<CommandOptions, "signal" | "onStdout" | "onStderr" | "onOutput" | "killOnAbort"> = {},
  ): Promise<CommandResult> {
    const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
    const heard = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const told = { stdout: options.onStdout, stderr: options.onStderr };
    const output = this.output(options);
    try {
      for (let next = await output.next(); ; next = await output.next()) {
        if (next.done) return resultOf(this.id, next.value, kept);
        const { stream, bytes } = next.value;
        kept[stream].push(bytes);
        options.onOutput?.(stream, bytes);
        told[stream]?.(heard[stream].decode(bytes, { stream: true }));
      }
    } catch (error) {
      if (options.signal?.aborted && options.killOnAbort) await this.kill().catch(() => {});
      throw error;
    }
  }

  /** Writes to its standard input, in the order of the calls: bytes that are sent again arrive once. */
  write(data: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    return this.#stdin(Buffer.from(data as Uint8Array), false, options);
  }

  /** Ends its standard input. */
  end(options: CallOptions = {}): Promise<void> {
    return this.#stdin(Buffer.alloc(0), true, options);
  }

  #stdin(bytes: Buffer, eof: boolean, options: CallOptions): Promise<void> {
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
    // After one that failed it is asked how far the input has come.
    this.#written = written.catch(() => null);
    return written.then(() => {});
  }

  signal(signal: string, options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#client.call("execution_signal", { ...this.#name, signal: signal as "SIGINT" }, options);
  }

  /** Ends it and everything that it has started; returns when nothing is left. */
  kill(options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#client.call("execution_end", this.#name, options);
  }
}

function resultOf(execId: string, exit: ExitEvent, kept: Record<"stdout" | "stderr", Uint8Array[]>): CommandResult {
  const stdoutBytes = Buffer.concat(kept.stdout);
  const stderrBytes = Buffer.concat(kept.stderr);
  return {
    execId,
    exitCode: exit.exit_code,
    signal: exit.signal,
    timedOut: exit.timed_out,
    durationMs: exit.duration_ms,
    stdout: stdoutBytes.toString(),
    stderr: stderrBytes.toString(),
    stdoutBytes,
    stderrBytes,
  };
}

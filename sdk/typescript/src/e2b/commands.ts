/** Commands of a sandbox by E2B's interface. Processes are identified by their pid in the guest. */
import type { Client } from "../client.ts";
import type { Execution } from "../execution.ts";
import { exitCodeOf } from "../exit-code.ts";
import type { Sandbox as NativeSandbox } from "../sandbox.ts";
import { CommandExitError, NotFoundError, TimeoutError, translating, unlessMissing } from "./errors.ts";

/** Options of a command. `timeoutMs` is its time limit, 60 s by default; 0: unlimited. */
export interface CommandStartOpts {
  background?: boolean;
  cwd?: string;
  /** Name of a user of the sandbox; "user" is the user that commands run as by default. */
  user?: string;
  envs?: Record<string, string>;
  onStdout?(data: string): void | Promise<void>;
  onStderr?(data: string): void | Promise<void>;
  stdin?: boolean;
  timeoutMs?: number;
  requestTimeoutMs?: number;
  signal?: AbortSignal;
}

/** Options of `connect`. */
export type CommandConnectOpts = Pick<CommandStartOpts, "onStdout" | "onStderr" | "timeoutMs" | "signal">;

/** How a command ended. */
export interface CommandResult {
  /** Exit code; 128 plus the number of the signal if a signal ended the command. */
  exitCode: number;
  /** Never set; in E2B, the reason of a failed start. */
  error?: string;
  /** Standard output. */
  stdout: string;
  /** Standard error. */
  stderr: string;
}

/** A running command. */
export interface ProcessInfo {
  /** Process id in the guest. */
  pid: number;
  /** The program. */
  cmd: string;
  /** Its arguments. */
  args: string[];
  /** Always empty. */
  envs: Record<string, string>;
  /** Its working directory. */
  cwd?: string;
}

const DEFAULT_TIMEOUT_MS = 60_000;
/** Directory of commands and relative paths, as in E2B's templates. */
export const HOME = "/home/user";

/** A command that was started in the background. */
export class CommandHandle {
  /** Process id in the guest. */
  readonly pid: number;
  readonly #execution: Execution;
  readonly #result: Promise<CommandResult>;
  readonly #disconnect = new AbortController();
  #stdout = "";
  #stderr = "";
  #exitCode: number | undefined;

  /** Follows a command from the oldest stored output. */
  constructor(pid: number, execution: Execution, { onStdout, onStderr }: CommandConnectOpts = {}) {
    this.pid = pid;
    this.#execution = execution;
    this.#result = this.#follow(onStdout, onStderr);
    // Rejections are handled by `wait`, if it is called.
    this.#result.catch(() => {});
  }

  /** Output so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** Output of errors so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Undefined while it runs. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** Throws CommandExitError if the command exits with a code other than 0, TimeoutError if its time limit ended it. */
  wait(): Promise<CommandResult> {
    return this.#result;
  }

  /** Stops following the command, which keeps running. */
  async disconnect(): Promise<void> {
    this.#disconnect.abort(new Error("The command was disconnected."));
  }

  /** Ends the command and its child processes. */
  kill(): Promise<boolean> {
    return unlessMissing(() => this.#execution.kill());
  }

  /** Writes to its standard input. */
  sendStdin(data: string | Uint8Array): Promise<void> {
    return translating(() => this.#execution.write(data));
  }

  /** Ends its standard input. */
  closeStdin(): Promise<void> {
    return translating(() => this.#execution.end());
  }

  async #follow(
    onStdout: CommandStartOpts["onStdout"],
    onStderr: CommandStartOpts["onStderr"],
  ): Promise<CommandResult> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const done = await translating(() =>
      this.#execution.wait({
        signal: this.#disconnect.signal,
        onOutput: async (stream, bytes) => {
          const text = decoders[stream].decode(bytes, { stream: true });
          if (stream === "stdout") this.#stdout += text;
          else this.#stderr += text;
          await (stream === "stdout" ? onStdout : onStderr)?.(text);
        },
      }),
    );
    this.#exitCode = exitCodeOf(done);
    if (done.timedOut) throw new TimeoutError("The command was ended by its time limit: set timeoutMs, 0 for none.");
    const result = { exitCode: this.#exitCode, stdout: done.stdout, stderr: done.stderr };
    if (result.exitCode !== 0) throw new CommandExitError(result);
    return result;
  }
}

/** Runs commands by `/bin/sh -c`. */
export class Commands {
  readonly #client: Client;
  readonly #sandbox: NativeSandbox;

  /** The commands of a sandbox. */
  constructor(client: Client, sandbox: NativeSandbox) {
    this.#client = client;
    this.#sandbox = sandbox;
  }

  /** Runs a command; with `background` returns a handle as soon as it has started. */
  run(cmd: string, opts?: CommandStartOpts & { background?: false }): Promise<CommandResult>;
  run(cmd: string, opts: CommandStartOpts & { background: true }): Promise<CommandHandle>;
  async run(cmd: string, opts: CommandStartOpts = {}): Promise<CommandResult | CommandHandle> {
    const { background = false, cwd = HOME, user, envs, stdin, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = opts;
    const handle = await translating(async () => {
      const execution = await this.#sandbox.start(cmd, {
        cwd,
        timeoutMs,
        ...(user === undefined || user === "user" ? {} : { user }),
        ...(envs === undefined ? {} : { env: envs }),
        ...(stdin || background ? {} : { stdin: "" }),
        ...(signal === undefined ? {} : { signal }),
      });
      const { pid } = await execution.get();
      return new CommandHandle(pid ?? 0, execution, opts);
    });
    return background ? handle : handle.wait();
  }

  /** The running commands. */
  list(): Promise<ProcessInfo[]> {
    return translating(async () => (await this.#running()).map(({ info }) => info));
  }

  /** Ends a command; false if no such command runs. */
  async kill(pid: number): Promise<boolean> {
    const execution = await translating(() => this.#find(pid));
    return execution !== null && unlessMissing(() => execution.kill());
  }

  /** Follows a running command from the oldest stored output. */
  async connect(pid: number, opts: CommandConnectOpts = {}): Promise<CommandHandle> {
    return new CommandHandle(pid, await this.#known(pid), opts);
  }

  /** Writes to the standard input of a command. */
  async sendStdin(pid: number, data: string | Uint8Array): Promise<void> {
    const execution = await this.#known(pid);
    await translating(() => execution.write(data));
  }

  /** Ends the standard input of a command. */
  async closeStdin(pid: number): Promise<void> {
    const execution = await this.#known(pid);
    await translating(() => execution.end());
  }

  async #known(pid: number): Promise<Execution> {
    const execution = await translating(() => this.#find(pid));
    if (execution === null) throw new NotFoundError(`No command with pid ${pid} runs: see commands.list().`);
    return execution;
  }

  async #find(pid: number): Promise<Execution | null> {
    const found = (await this.#running()).find(({ info }) => info.pid === pid);
    return found === undefined ? null : this.#sandbox.execution(found.execId);
  }

  async #running(): Promise<{ execId: string; info: ProcessInfo }[]> {
    const found: { execId: string; info: ProcessInfo }[] = [];
    const name = { room_id: this.#sandbox.roomId, sandbox: this.#sandbox.agentId };
    for await (const { exec_id, state, argv, cwd, pid } of this.#client.items("execution_list", name)) {
      const [cmd = "", ...args] = argv;
      if (state === "running") found.push({ execId: exec_id, info: { pid: pid ?? 0, cmd, args, envs: {}, cwd } });
    }
    return found;
  }
}

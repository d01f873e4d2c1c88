/**
 * Owns the method `exec`: one command from its request to its result.
 *
 *   request ─▶ user, cwd, program ─▶ spawn ─▶ started ─▶ stdout, stderr, stdin, signals ─▶ ended ─▶ output sent ─▶ result
 *
 * A command is a session and a process group of its own. It belongs to the guest, not to its stream: when the stream
 * ends early, the command goes on and its output is dropped.
 */
import { statSync } from "node:fs";
import { constants } from "node:os";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import {
  Channel,
  type ExecRequest,
  type ExecResult,
  type ExecStarted,
  StreamErrorCode,
} from "../../shared/agent-protocol/messages.ts";
import * as libc from "../libc.ts";
import type { Reaper } from "../reap.ts";
import { Input } from "./input.ts";
import { Output } from "./output.ts";
import { findProgram, type Refusal, refusalOf } from "./program.ts";
import { InvalidRequest, parseExecRequest } from "./request.ts";
import { commandAs, findUser, type User } from "./user.ts";

/** What the API promises per sandbox; the host refuses the next one too. */
const MAX_LIVE = 64;
const KILL_AFTER_MS = 5_000;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface ExecDeps {
  reaper: Reaper;
  /** The sandbox's own environment. */
  env(): Record<string, string>;
}

export class Exec {
  readonly #deps: ExecDeps;
  #live = 0;

  constructor(deps: ExecDeps) {
    this.#deps = deps;
  }

  async run(stream: Stream, request: object): Promise<void> {
    if (this.#live >= MAX_LIVE) {
      return stream.fail(StreamErrorCode.too_many_streams, `${MAX_LIVE} commands are running`);
    }
    this.#live++;
    try {
      await this.#run(stream, parseExecRequest(request));
    } catch (error) {
      if (!(error instanceof InvalidRequest)) throw error;
      stream.fail(StreamErrorCode.invalid_request, error.message);
    } finally {
      this.#live--;
    }
  }

  async #run(stream: Stream, request: ExecRequest): Promise<void> {
    const user = findUser(request.user);
    if (!user) return stream.fail(StreamErrorCode.user_not_found, `no user ${request.user}`);
    const cwd = request.cwd ?? user.home;
    if (!isDirectory(cwd)) return stream.fail(StreamErrorCode.cwd_not_found, `no directory ${cwd}`);
    const env = { ...environmentOf(user), ...this.#deps.env(), ...request.env };

    const startedAt = Date.now();
    const command = spawn(request, user, cwd, env);
    if ("refusal" in command) return refuse(stream, request, command.refusal, startedAt);
    const { child } = command;
    this.#deps.reaper.spare(child);
    const started: ExecStarted = { type: "started", pid: child.pid, at_ms: startedAt };
    stream.say(started);

    const stdout = new Output(command.stdout, (bytes) => stream.write(Channel.stdout, bytes));
    const stderr = new Output(command.stderr, (bytes) => stream.write(Channel.stderr, bytes));
    const stdin = command.stdin === null ? null : new Input(command.stdin, stream.read(Channel.stdin));
    const deadline = new Deadline(child.pid, request.timeout_ms);
    stream.hear((event) => {
      const signal = signalOf(event);
      if (signal !== null && child.exitCode === null && child.signalCode === null) signalGroup(child.pid, signal);
    });

    await child.exited;
    const finishedAt = Date.now();
    deadline.commandEnded();
    stdin?.close();
    await Promise.all([stdout.finish(), stderr.finish()]);
    const result: ExecResult = {
      exit_code: deadline.passed || child.signalCode !== null ? null : child.exitCode,
      signal: deadline.passed ? null : signalName(child.signalCode),
      timed_out: deadline.passed,
      started_at_ms: startedAt,
      finished_at_ms: finishedAt,
    };
    stream.finish(result);
  }
}

/** TERM to the whole group when the time is up, KILL to what is left of it later, whoever ended meanwhile. */
class Deadline {
  readonly #group: number;
  #timer: Timer;
  #passed = false;

  constructor(group: number, timeoutMs: number) {
    this.#group = group;
    this.#timer = setTimeout(() => this.#pass(), timeoutMs);
  }

  get passed(): boolean {
    return this.#passed;
  }

  commandEnded(): void {
    // The group's number stays taken as long as someone is in it, and not a moment longer.
    if (!this.#passed || !signalGroup(this.#group, 0)) clearTimeout(this.#timer);
  }

  #pass(): void {
    this.#passed = true;
    signalGroup(this.#group, "SIGTERM");
    this.#timer = setTimeout(() => signalGroup(this.#group, "SIGKILL"), KILL_AFTER_MS);
  }
}

interface Command {
  child: Bun.Subprocess;
  stdin: number | null;
  stdout: number;
  stderr: number;
}

/** Real pipes, not Bun's own: those are sockets, on which a command cannot open /dev/stdout. */
function spawn(
  request: ExecRequest,
  user: User,
  cwd: string,
  env: Record<string, string>,
): Command | { refusal: Refusal } {
  const program = findProgram(request.argv[0] ?? "", cwd, env.PATH ?? DEFAULT_PATH);
  if ("reason" in program) return { refusal: program };

  const stdin = request.stdin ? libc.pipe() : null;
  const stdout = libc.pipe();
  const stderr = libc.pipe();
  try {
    const child = Bun.spawn(commandAs(user, request.argv), {
      cwd,
      env,
      detached: true,
      stdio: [stdin?.read ?? "ignore", stdout.write, stderr.write],
    });
    return { child, stdin: stdin?.write ?? null, stdout: stdout.read, stderr: stderr.read };
  } catch (error) {
    for (const fd of [stdin?.write, stdout.read, stderr.read]) if (fd !== undefined) libc.close(fd);
    return { refusal: refusalOf(error) };
  } finally {
    for (const fd of [stdin?.read, stdout.write, stderr.write]) if (fd !== undefined) libc.close(fd);
  }
}

async function refuse(stream: Stream, request: ExecRequest, refusal: Refusal, startedAt: number): Promise<void> {
  const line = `roomd: ${request.argv[0]}: ${refusal.reason}\n`;
  await stream.write(Channel.stderr, new TextEncoder().encode(line));
  const result: ExecResult = {
    exit_code: refusal.exitCode,
    signal: null,
    timed_out: false,
    started_at_ms: startedAt,
    finished_at_ms: Date.now(),
  };
  stream.finish(result);
}

function environmentOf(user: User): Record<string, string> {
  return {
    PATH: DEFAULT_PATH,
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    SHELL: user.shell,
    LANG: "C.UTF-8",
  };
}

function signalOf(event: unknown): NodeJS.Signals | null {
  if (typeof event !== "object" || event === null) return null;
  const { type, signal } = event as Partial<Record<"type" | "signal", unknown>>;
  return type === "signal" && isSignal(signal) ? signal : null;
}

function isSignal(name: unknown): name is NodeJS.Signals {
  return typeof name === "string" && Object.hasOwn(constants.signals, name);
}

/** Bun has no names for the real-time ones. */
function signalName(signal: NodeJS.Signals | number | null): string | null {
  return typeof signal === "number" ? `SIG${signal}` : signal;
}

/** Whether anyone was there to take it. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

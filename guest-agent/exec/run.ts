/**
 * Owns the method `exec`: one command from its request to its result.
 *
 *   request ─▶ user, cwd, program ─▶ spawn ─▶ started ─▶ stdin, stdout, stderr, signals ─▶ ended ─▶ output sent ─▶ result
 *
 * A command is a session and a process group of its own. It belongs to the guest, not to its stream: when the stream
 * ends early, the command goes on and its output is dropped.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import {
  Channel,
  type ExecRequest,
  type ExecResult,
  type ExecStarted,
  StreamErrorCode,
} from "../../shared/agent-protocol/messages.ts";
import type { Drive } from "../drive/drive.ts";
import type { Reaper } from "../reap.ts";
import { Deadline } from "./deadline.ts";
import { environmentOf } from "./environment.ts";
import { signalGroup, signalName, signalOf } from "./group.ts";
import { feed } from "./input.ts";
import { Output } from "./output.ts";
import type { Refusal } from "./program.ts";
import { InvalidRequest, parseExecRequest } from "./request.ts";
import { type Command, spawn } from "./spawn.ts";
import { findUser } from "./user.ts";

/** What the API promises per sandbox; the host refuses the next one too. */
const MAX_LIVE = 64;

export interface ExecDeps {
  reaper: Reaper;
  drive: Drive;
  /** The sandbox's own environment. */
  env(): Record<string, string>;
}

export class Exec {
  readonly #deps: ExecDeps;
  #live = 0;

  constructor(deps: ExecDeps) {
    this.#deps = deps;
  }

  /** Ends the stream with an ExecResult, or fails it. */
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
    const env = { ...environmentOf(user), ...this.#deps.env(), ...request.env };
    const { argv, stdin } = request;
    if (!(await this.#canLook(request.cwd ?? user.home, argv, env))) {
      return stream.fail(StreamErrorCode.drive_unavailable, "the drive does not answer");
    }
    // As login does: not every user has a home.
    const cwd = request.cwd ?? (isDirectory(user.home) ? user.home : "/");
    if (!isDirectory(cwd)) return stream.fail(StreamErrorCode.cwd_not_found, `no directory ${cwd}`);

    const startedAt = Date.now();
    const command = spawn({ argv, user, cwd, env, stdin });
    const ending =
      "reason" in command
        ? await refuse(stream, argv, command)
        : await this.#follow(stream, command, startedAt, request.timeout_ms);
    const result: ExecResult = { ...ending, started_at_ms: startedAt };
    stream.finish(result);
  }

  /** Whether folder and program can be looked for without being held by a drive that does not answer. */
  async #canLook(cwd: string, [name = ""]: string[], env: Record<string, string>): Promise<boolean> {
    const { drive } = this.#deps;
    const places = [".", name, ...(env.PATH ?? "").split(":")].map((path) => resolve(cwd, path));
    return places.some((place) => drive.holds(place)) ? drive.answers() : true;
  }

  /** From the spawn until everything that the command wrote has been sent. */
  async #follow(stream: Stream, command: Command, startedAt: number, timeoutMs: number): Promise<Ending> {
    const { child } = command;
    this.#deps.reaper.spare(child);
    const started: ExecStarted = { type: "started", pid: child.pid, at_ms: startedAt };
    stream.say(started);

    const deadline = new Deadline(child.pid, timeoutMs);
    const stdout = new Output(command.stdout, (bytes) => stream.write(Channel.stdout, bytes));
    const stderr = new Output(command.stderr, (bytes) => stream.write(Channel.stderr, bytes));
    if (command.stdin !== null) void feed(command.stdin, stream.read(Channel.stdin));
    let ended = false;
    stream.hear((event) => {
      const signal = signalOf(event);
      if (signal !== null && !ended) signalGroup(child.pid, signal);
    });

    await Promise.race([child.exited, deadline.lost]);
    ended = true;
    const finishedAt = Date.now();
    deadline.commandEnded();
    await Promise.all([stdout.finish(), stderr.finish()]);
    const { passed } = deadline;
    return {
      exit_code: passed || child.signalCode !== null ? null : child.exitCode,
      signal: passed ? null : signalName(child.signalCode),
      timed_out: passed,
      finished_at_ms: finishedAt,
    };
  }
}

type Ending = Omit<ExecResult, "started_at_ms">;

/** A command that could not begin ends as it would in a shell: a line on stderr, and the shell's exit code. */
async function refuse(stream: Stream, argv: string[], refusal: Refusal): Promise<Ending> {
  const line = `roomd: ${argv[0]}: ${refusal.reason}\n`;
  await stream.write(Channel.stderr, new TextEncoder().encode(line));
  return { exit_code: refusal.exitCode, signal: null, timed_out: false, finished_at_ms: Date.now() };
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

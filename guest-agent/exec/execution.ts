/**
 * One execution: a command, its state and its output, from its request until it is forgotten.
 *
 *     starting ─▶ running ─▶ ended, output complete ─▶ exited
 *         └─────▶ refused: there never was a command, and nothing is stored
 *
 * It belongs to the guest, not to the client that started it: followers may attach and detach.
 */
import {
  Channel,
  type ExecRequest,
  type ExecState,
  NO_TIMEOUT_MS,
  StreamErrorCode,
} from "../../shared/agent-protocol/messages.ts";
import type { Drive } from "../drive/drive.ts";
import { IMAGE } from "../image-defaults.ts";
import type { Zombie } from "../libc.ts";
import type { Reaper } from "../reap.ts";
import type { Cgroup } from "./cgroup.ts";
import { Deadline } from "./deadline.ts";
import { DEFAULT_PATH, environmentOf } from "./environment.ts";
import { Input } from "./input.ts";
import type { Journal } from "./kept-output.ts";
import { Output, type Take } from "./output-pipe.ts";
import { canLook, isDirectory, usualPlace } from "./preflight.ts";
import { ProcessGroup, signalName } from "./process-group.ts";
import type { Refusal } from "./program.ts";
import { type Command, type CommandLine, spawn } from "./spawn.ts";
import { userFor } from "./user.ts";

export interface ExecDeps {
  reaper: Pick<Reaper, "adopt">;
  drive: Drive;
  /** The sandbox's own environment. */
  env(): Record<string, string>;
  /** A cgroup for a command's processes, or null if there are no cgroups. */
  takeCgroup(): Cgroup | null;
  makeJournal(): Journal;
}

/** The command cannot be started; the code is the protocol's. */
export class StartError extends Error {
  override name = "StartError";
  readonly code: StreamErrorCode;
  constructor(code: StreamErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Most commands have ended within this time. */
const LASTS_AFTER_MS = 20;
const SHOWN_WORDS = 64;
const SHOWN_CHARACTERS = 1024;

/** Stored with it, in addition to the request. */
interface Own {
  number: number;
  fingerprint: string;
  tag: string;
  /** Whether the host generated the name, for this run alone. */
  isGenerated: boolean;
  /** The client needs the result, and the output only if the command takes longer. */
  isBrief: boolean;
}

export class Execution {
  readonly exec_id: string;
  readonly fingerprint: string;
  readonly number: number;
  readonly isGenerated: boolean;
  readonly journal: Journal;
  /** Resolves once the command runs. Rejects with StartError. */
  readonly started: Promise<void>;
  /** Resolves once the command has ended and its output is complete. Rejects as `started` does. */
  readonly ended: Promise<void>;
  readonly #lasts = Promise.withResolvers<void>();
  /** A text that the host stores with the execution. */
  note = "";
  /** A reader has received the command's whole output and its final state. */
  wasTold = false;
  input = new Input(null);
  #deadline: Deadline | null = null;
  #group: ProcessGroup | null = null;
  #state: Omit<ExecState, "oldest_seq" | "last_seq" | "stdin_bytes" | "stdin_open" | "note">;

  constructor(deps: ExecDeps, request: ExecRequest, own: Own) {
    const { exec_id, argv, unlimited } = request;
    const timeout_ms = unlimited ? NO_TIMEOUT_MS : request.timeout_ms;
    this.exec_id = exec_id;
    this.fingerprint = own.fingerprint;
    this.number = own.number;
    this.isGenerated = own.isGenerated;
    this.journal = deps.makeJournal();
    this.#state = {
      exec_id,
      number: own.number,
      state: "running",
      argv: shownWords(argv),
      cwd: "",
      user: "",
      pid: null,
      timeout_ms,
      exit_code: null,
      signal: null,
      timed_out: false,
      stdout_bytes: 0,
      stderr_bytes: 0,
      started_at_ms: Date.now(),
      finished_at_ms: null,
      tag: own.tag,
    };
    const began = this.#begin(deps, request, own.isBrief);
    this.started = began.then(() => {});
    this.ended = began.then((running) => running.ended);
    // A caller that needs the outcome awaits it; unhandled rejections are suppressed.
    this.started.catch(() => {});
    this.ended.catch(() => {});
  }

  get state(): ExecState {
    const { journal, input, note } = this;
    return {
      ...this.#state,
      oldest_seq: journal.oldestSeq,
      last_seq: journal.lastSeq,
      stdin_bytes: input.received,
      stdin_open: input.isOpen,
      note,
    };
  }

  /** Total length of all texts that are stored with the execution. */
  get characters(): number {
    const { argv, cwd, user, tag } = this.#state;
    let count = 0;
    for (const text of [this.exec_id, this.fingerprint, this.note, cwd, user, tag, ...argv]) count += text.length;
    return count;
  }

  /** Resolves when it has run longer than most commands do; never if it has ended by then. */
  get lasts(): Promise<void> {
    return this.#lasts.promise;
  }

  get isRunning(): boolean {
    return this.#state.state === "running";
  }

  /** Whether its caller has the answer, and no other client can refer to it. */
  get isAnswered(): boolean {
    return this.isGenerated && this.wasTold && !this.journal.isRead;
  }

  /** Returns whether a process received the signal. */
  signal(signal: NodeJS.Signals): boolean {
    return this.#state.finished_at_ms === null && (this.#group?.signal(signal) ?? false);
  }

  /** Ends the command and all processes that it started. Resolves when they have ended. */
  async end(): Promise<void> {
    await this.#deadline?.end();
    await this.ended;
  }

  async #begin(deps: ExecDeps, request: ExecRequest, isBrief: boolean): Promise<{ ended: Promise<void> }> {
    const line = await commandLineOf(deps, request);
    Object.assign(this.#state, {
      cwd: line.cwd.slice(0, SHOWN_CHARACTERS),
      user: line.user.name,
      started_at_ms: Date.now(),
    });
    const cgroup = deps.takeCgroup();
    const oomKillsBefore = cgroup?.oomKills ?? 0;
    const command = spawn({ ...line, cgroup });
    if ("reason" in command) {
      cgroup?.release();
      return { ended: this.#refuse(request.argv, command) };
    }
    const { pid } = command;
    const exited = deps.reaper.adopt(pid);
    this.#state.pid = pid;
    this.input = new Input(command.stdin);
    const group = new ProcessGroup(pid, cgroup, oomKillsBefore);
    this.#group = group;
    this.#deadline = new Deadline(group, request.unlimited ? null : request.timeout_ms);
    // Wrapped in an object: an async function would await a returned promise.
    return { ended: this.#follow(command, exited, group, this.#deadline, isBrief) };
  }

  /** Runs from the spawn until everything that the command wrote is stored. */
  async #follow(
    { stdout, stderr }: Command,
    exited: Promise<Zombie>,
    group: ProcessGroup,
    deadline: Deadline,
    isBrief: boolean,
  ): Promise<void> {
    const outputs = [
      new Output(stdout, (most, read) => this.#take(Channel.stdout, most, read)),
      new Output(stderr, (most, read) => this.#take(Channel.stderr, most, read)),
    ];
    const follow = () => {
      for (const output of outputs) output.follow();
      this.#lasts.resolve();
    };
    const look = setTimeout(follow, LASTS_AFTER_MS);
    if (!isBrief) follow();
    // Null if the command could not be ended.
    const ended = await Promise.race([exited, deadline.lost]);
    clearTimeout(look);
    this.#state.finished_at_ms = Date.now();
    // Read before the cgroup is released for reuse.
    const oom = group.ranOutOfMemory;
    deadline.commandEnded();
    this.journal.commandEnded();
    await Promise.all(outputs.map((output) => output.finish()));
    const timed_out = deadline.passed;
    this.#exit({
      timed_out,
      exit_code: timed_out ? null : (ended?.exit_code ?? null),
      signal: timed_out ? null : signalName(ended?.signal ?? null),
      ...(oom && { oom }),
    });
  }

  #take(channel: 1 | 2, ...[most, read]: Parameters<Take>): Promise<number> {
    return this.journal.take(channel, most, (places) => {
      const count = read(places);
      this.#state[channel === Channel.stdout ? "stdout_bytes" : "stderr_bytes"] += count;
      return count;
    });
  }

  /** A command that could not be started ends as in a shell: a line on stderr, and the shell's exit code. */
  async #refuse(argv: string[], refusal: Refusal): Promise<void> {
    const line = new TextEncoder().encode(`roomd: ${argv[0]}: ${refusal.reason}\n`);
    this.#state.stderr_bytes = line.byteLength;
    await this.journal.append(Channel.stderr, line);
    this.#state.finished_at_ms = Date.now();
    this.#exit({ exit_code: refusal.exitCode, signal: null, timed_out: false });
  }

  #exit(ending: Pick<ExecState, "exit_code" | "signal" | "timed_out" | "oom">): void {
    Object.assign(this.#state, ending, { state: "exited" });
    this.input.abandon();
    this.journal.close();
  }
}

async function commandLineOf(deps: ExecDeps, request: ExecRequest): Promise<Omit<CommandLine, "cgroup">> {
  const { argv, stdin } = request;
  const user = userFor(request.user);
  if (!user) throw new StartError(StreamErrorCode.user_not_found, `no user ${request.user}`);
  const env = { ...environmentOf(user), ...deps.env(), ...request.env };
  if (!(await canLook(deps.drive, request.cwd ?? IMAGE.cwd ?? user.home, argv[0] ?? "", env.PATH ?? DEFAULT_PATH))) {
    throw new StartError(StreamErrorCode.drive_unavailable, "the drive does not answer");
  }
  const cwd = request.cwd ?? usualPlace(user);
  if (cwd === request.cwd && !isDirectory(cwd)) {
    throw new StartError(StreamErrorCode.cwd_not_found, `no directory ${cwd}`);
  }
  return { argv, user, cwd, env, stdin };
}

/** Words by which a user recognizes the command. */
function shownWords(argv: string[]): string[] {
  let left = SHOWN_CHARACTERS;
  return argv.slice(0, SHOWN_WORDS).map((word) => {
    const shown = word.slice(0, left);
    left -= shown.length;
    return shown;
  });
}

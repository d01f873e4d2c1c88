/** A guest's terminals: the methods with which the host opens, shows, lists and closes them. */
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { StreamErrorCode, type TerminalList, type TerminalOpened } from "../../shared/agent-protocol/messages.ts";
import type { Drive } from "../drive/drive.ts";
import type { Cgroup } from "../exec/cgroup.ts";
import { DEFAULT_PATH, environmentOf } from "../exec/environment.ts";
import { canLook, isDirectory, usualPlace } from "../exec/preflight.ts";
import { userFor } from "../exec/user.ts";
import { IMAGE } from "../image-defaults.ts";
import type { Reaper } from "../reap.ts";
import { parseAttach, parseId, parseOpen, parseWatch } from "./request.ts";
import { spawnInTerminal } from "./spawn.ts";
import { Terminal } from "./terminal.ts";

/** The limit that the API documents per sandbox. At most as many ended terminals are retained. */
const MAX_LIVE = 16;
const MAX_ENDED = 16;
/** How long the last bytes and the exit code of an ended terminal are available. */
const ENDED_KEPT_MS = 10 * 60_000;

export interface TerminalDeps {
  reaper: Reaper;
  drive: Drive;
  /** The sandbox's own environment. */
  env(): Record<string, string>;
  /** A cgroup for a terminal's processes, or null if there are no cgroups. */
  takeCgroup(): Cgroup | null;
}

export class Terminals {
  readonly #deps: TerminalDeps;
  readonly #all = new Map<string, Terminal>();
  readonly #timers = new Map<Terminal, Timer>();
  #opening = 0;

  constructor(deps: TerminalDeps) {
    this.#deps = deps;
  }

  /** Answers with TerminalOpened. Throws InvalidRequest. */
  async open(stream: Stream, request: object): Promise<void> {
    if (this.#live + this.#opening >= MAX_LIVE) {
      return stream.fail(StreamErrorCode.too_many_streams, `${MAX_LIVE} terminals are open`);
    }
    this.#opening++;
    try {
      await this.#open(stream, request);
    } finally {
      this.#opening--;
    }
  }

  /** Attaches the stream to a terminal. Throws InvalidRequest. */
  async attach(stream: Stream, request: object): Promise<void> {
    const options = parseAttach(request);
    const terminal = this.#all.get(options.terminal_id);
    if (!terminal) return notFound(stream, options.terminal_id);
    await terminal.attach(stream, options);
  }

  /** Shows a terminal on the stream to a watcher, which cannot type. Throws InvalidRequest. */
  async watch(stream: Stream, request: object): Promise<void> {
    const options = parseWatch(request);
    const terminal = this.#all.get(options.terminal_id);
    if (!terminal) return notFound(stream, options.terminal_id);
    await terminal.watch(stream, options);
  }

  /** Answers with TerminalList. */
  list(stream: Stream): void {
    const list: TerminalList = { terminals: [...this.#all.values()].map(({ state }) => state) };
    stream.finish(list);
  }

  /** Ends a terminal and removes it. Throws InvalidRequest. */
  async close(stream: Stream, request: object): Promise<void> {
    const id = parseId(request);
    const terminal = this.#all.get(id);
    if (!terminal) return notFound(stream, id);
    const { everything } = request as { everything?: unknown };
    const end = await (everything === true ? terminal.end() : terminal.hangUp());
    this.#forget(terminal);
    stream.finish(end);
  }

  /** For a frozen template: removes everything that the warm-up has left. */
  forgetAll(): void {
    for (const terminal of [...this.#all.values()]) this.#forget(terminal);
  }

  async #open(stream: Stream, request: object): Promise<void> {
    const {
      terminal_id,
      argv,
      cwd: requestedCwd,
      env: more,
      user: name,
      term,
      rows,
      cols,
      detached_life_ms,
    } = parseOpen(request);
    if (this.#all.has(terminal_id)) {
      return stream.fail(StreamErrorCode.invalid_request, `there is a terminal ${terminal_id}`);
    }
    const user = userFor(name);
    if (!user) return stream.fail(StreamErrorCode.user_not_found, `no user ${name}`);
    const env: Record<string, string> = { ...environmentOf(user), ...this.#deps.env(), ...more, TERM: term };
    const command = argv ?? [user.shell, "-l"];
    if (
      !(await canLook(
        this.#deps.drive,
        requestedCwd ?? IMAGE.cwd ?? user.home,
        command[0] ?? "",
        env.PATH ?? DEFAULT_PATH,
      ))
    ) {
      return stream.fail(StreamErrorCode.drive_unavailable, "the drive does not answer");
    }
    const cwd = requestedCwd ?? usualPlace(user);
    if (!isDirectory(cwd)) return stream.fail(StreamErrorCode.cwd_not_found, `no directory ${cwd}`);
    const line = { argv: command, user, cwd, env, rows, cols, cgroup: this.#deps.takeCgroup() };
    const spawned = spawnInTerminal(line);
    if ("child" in spawned) this.#deps.reaper.spare(spawned.child);
    this.#keep(new Terminal(terminal_id, line, spawned, detached_life_ms), stream);
  }

  #keep(terminal: Terminal, stream: Stream): void {
    this.#all.set(terminal.id, terminal);
    void terminal.ended.then(() => {
      if (this.#all.get(terminal.id) !== terminal) return;
      this.#timers.set(
        terminal,
        setTimeout(() => this.#forget(terminal), ENDED_KEPT_MS),
      );
      const ended = [...this.#all.values()].filter(({ hasEnded }) => hasEnded);
      for (const oldest of ended.slice(0, -MAX_ENDED)) this.#forget(oldest);
    });
    const opened: TerminalOpened = { pid: terminal.pid, started_at_ms: terminal.startedAt };
    stream.finish(opened);
  }

  #forget(terminal: Terminal): void {
    clearTimeout(this.#timers.get(terminal));
    this.#timers.delete(terminal);
    if (this.#all.get(terminal.id) === terminal) this.#all.delete(terminal.id);
  }

  get #live(): number {
    return [...this.#all.values()].filter(({ hasEnded }) => !hasEnded).length;
  }
}

function notFound(stream: Stream, id: string): void {
  stream.fail(StreamErrorCode.terminal_not_found, `no terminal ${id}`);
}

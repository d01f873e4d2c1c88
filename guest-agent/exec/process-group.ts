/**
 * The processes of one execution: its process group, to which signals are sent, and its cgroup, by which its end is detected and forced.
 */
import { constants } from "node:os";
import type { Cgroup } from "./cgroup.ts";

export class ProcessGroup {
  readonly #pid: number;
  readonly #lent: Cgroup | null;
  readonly #turn: number;
  /** OOM kills before the command's start, which do not count. */
  readonly #oomKillsBefore: number;
  #leaderEnded = false;
  #emptied = false;

  /** `oomKillsBefore` is the cgroup's count before the command was started. */
  constructor(pid: number, cgroup: Cgroup | null, oomKillsBefore = 0) {
    this.#pid = pid;
    this.#lent = cgroup;
    this.#turn = cgroup?.turn ?? 0;
    this.#oomKillsBefore = oomKillsBefore;
  }

  /** Signals the process group, as a terminal would. Returns whether a process received the signal. */
  signal(signal: NodeJS.Signals): boolean {
    return signalGroup(this.#pid, signal);
  }

  /** Sends SIGTERM to all of its processes. */
  terminate(): void {
    if (!this.#isEmptied()) signalGroup(this.#pid, "SIGTERM");
    this.signalAll("SIGTERM");
  }

  /** Signals every process of the cgroup. */
  signalAll(signal: NodeJS.Signals): void {
    this.#cgroup?.signal(signal);
  }

  kill(): void {
    if (!this.#isEmptied()) signalGroup(this.#pid, "SIGKILL");
    this.#cgroup?.kill();
  }

  /** Its process group id may be reused once the group is empty. */
  leaderEnded(): void {
    this.#leaderEnded = true;
  }

  /** Whether the kernel has OOM-killed a process of the group. */
  get ranOutOfMemory(): boolean {
    return (this.#cgroup?.oomKills ?? 0) > this.#oomKillsBefore;
  }

  /** Whether none of its processes remains. */
  get isGone(): boolean {
    return this.#isEmptied() && (this.#cgroup?.isEmpty ?? true);
  }

  /** The cgroup, or null: once it was empty, another execution may have it. */
  get #cgroup(): Cgroup | null {
    return this.#lent?.turn === this.#turn ? this.#lent : null;
  }

  #isEmptied(): boolean {
    this.#emptied ||= this.#leaderEnded && !signalGroup(this.#pid, 0);
    return this.#emptied;
  }

  release(): void {
    this.#cgroup?.release();
  }
}

/** Whether any process received it; 0 only checks that. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

/** Parses an event of the host on an exec stream; null if it is unknown to this agent. */
export function signalOf(event: unknown): NodeJS.Signals | null {
  if (typeof event !== "object" || event === null) return null;
  const { type, signal } = event as Partial<Record<"type" | "signal", unknown>>;
  return type === "signal" && isSignal(signal) ? signal : null;
}

/** By number; the first name if there are two. */
const NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** Bun reports names, the kernel numbers; real-time signals have no names. */
export function signalName(signal: NodeJS.Signals | number | null): string | null {
  return typeof signal === "number" ? (NAMES.get(signal) ?? `SIG${signal}`) : signal;
}

export function isSignal(name: unknown): name is NodeJS.Signals {
  return typeof name === "string" && Object.hasOwn(constants.signals, name);
}

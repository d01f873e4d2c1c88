/**
 * Owns the processes of one execution: its process group, to which signals go, and its control group, of which the end is made.
 */
import { constants } from "node:os";
import type { Cgroup } from "./cgroup.ts";

export class Group {
  readonly #pid: number;
  readonly #lent: Cgroup | null;
  readonly #turn: number;
  /** Those before it do not count. */
  readonly #oomKillsBefore: number;
  #leaderEnded = false;
  #emptied = false;

  /** `oomKillsBefore` is the control group's count before the command was begun. */
  constructor(pid: number, cgroup: Cgroup | null, oomKillsBefore = 0) {
    this.#pid = pid;
    this.#lent = cgroup;
    this.#turn = cgroup?.turn ?? 0;
    this.#oomKillsBefore = oomKillsBefore;
  }

  /** To the process group, as a terminal would. Whether anyone was there to take it. */
  signal(signal: NodeJS.Signals): boolean {
    return signalGroup(this.#pid, signal);
  }

  /** Asks all of it to end. */
  terminate(): void {
    if (!this.#isEmptied()) signalGroup(this.#pid, "SIGTERM");
    this.signalAll("SIGTERM");
  }

  /** To everyone of the control group. */
  signalAll(signal: NodeJS.Signals): void {
    this.#cgroup?.signal(signal);
  }

  kill(): void {
    if (!this.#isEmptied()) signalGroup(this.#pid, "SIGKILL");
    this.#cgroup?.kill();
  }

  /** The number of its process group may become another's once nobody is left in it. */
  leaderEnded(): void {
    this.#leaderEnded = true;
  }

  /** Whether the kernel has ended a process of it for lack of memory. */
  get ranOutOfMemory(): boolean {
    return (this.#cgroup?.oomKills ?? 0) > this.#oomKillsBefore;
  }

  /** Whether nothing of it is left. */
  get isGone(): boolean {
    return this.#isEmptied() && (this.#cgroup?.isEmpty ?? true);
  }

  /** Once nothing was left in it, it is another's. */
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

/** Whether anyone was there to take it; 0 only asks that. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

/** What the host says within an exec stream; null is what this agent does not know. */
export function signalOf(event: unknown): NodeJS.Signals | null {
  if (typeof event !== "object" || event === null) return null;
  const { type, signal } = event as Partial<Record<"type" | "signal", unknown>>;
  return type === "signal" && isSignal(signal) ? signal : null;
}

/** By number, the first name where there are two. */
const NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** Bun tells names, the kernel numbers; those for real time have none. */
export function signalName(signal: NodeJS.Signals | number | null): string | null {
  return typeof signal === "number" ? (NAMES.get(signal) ?? `SIG${signal}`) : signal;
}

export function isSignal(name: unknown): name is NodeJS.Signals {
  return typeof name === "string" && Object.hasOwn(constants.signals, name);
}

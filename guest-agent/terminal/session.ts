/**
 * The processes of a terminal: its session, which is every descendant of its leader that has not started its own session, and, by its
 * cgroup, every process that was ever started in it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cgroup } from "../exec/cgroup.ts";
import { ProcessGroup } from "../exec/process-group.ts";

const KILL_AFTER_MS = 5_000;
/** Not even SIGKILL ends a process that is blocked on a dead drive. */
const LOST_AFTER_MS = 1_000;
const LOOK_EVERY_MS = 50;

export class Session {
  readonly #leader: number;
  readonly #group: ProcessGroup;
  #leaderEnded = false;

  constructor(leader: number, cgroup: Cgroup | null) {
    this.#leader = leader;
    this.#group = new ProcessGroup(leader, cgroup);
  }

  /** The kernel has hung up on the foreground processes; the remaining ones are no longer identified by the leader's pid. */
  leaderEnded(): void {
    this.#leaderEnded = true;
    this.#group.leaderEnded();
    this.#group.release();
  }

  /** Hangs up, as a lost line does. Resolves once the leader has exited or has been killed. */
  async hangUp(): Promise<void> {
    this.#signal("SIGHUP");
    // A stopped process handles SIGHUP only after SIGCONT.
    this.#signal("SIGCONT");
    if (await this.#within(KILL_AFTER_MS, () => this.#leaderEnded)) return;
    send(this.#leader, "SIGKILL");
  }

  /** Ends every process that was ever started in it. Resolves when none is left, or when they could not be ended. */
  async end(): Promise<void> {
    for (const signal of ["SIGHUP", "SIGCONT"] as const) {
      this.#signal(signal);
      this.#group.signalAll(signal);
    }
    const isGone = () => this.#leaderEnded && this.#group.isGone;
    if (await this.#within(KILL_AFTER_MS, isGone)) return;
    this.#signal("SIGKILL");
    this.#group.kill();
    await this.#within(LOST_AFTER_MS, isGone);
  }

  #signal(signal: NodeJS.Signals): void {
    // After the leader's exit, its number may belong to another session.
    if (this.#leaderEnded) return;
    for (const pid of membersOf(this.#leader)) send(pid, signal);
  }

  async #within(ms: number, isSo: () => boolean): Promise<boolean> {
    for (const due = performance.now() + ms; !isSo(); await sleep(LOOK_EVERY_MS)) {
      if (performance.now() > due) return false;
    }
    return true;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already exited.
  }
}

function membersOf(session: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isMember(name, session))
    .map(Number);
}

/** /proc/PID/stat: `pid (name) state parent group session …`, in which the name may contain anything; a zombie is not a member. */
function isMember(pid: string, session: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state, , , of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(of) === session && state !== "Z";
  } catch {
    return false;
  }
}

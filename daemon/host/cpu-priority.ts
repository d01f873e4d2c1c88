/**
 * CPU priorities of guests. Sandboxes come before machines that still wait for one: by the weights of their groups (confine), or without
 * groups by the weights of sessions, of which each guest's QEMU is one. There the daemon comes before both.
 */
import { existsSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";

/** Purpose of a machine: a sandbox, or the next caller. */
export type Rank = "serving" | "waiting";

/** Weight of its group relative to others. */
export const CPU_WEIGHT: Readonly<Record<Rank, number>> = { serving: 100, waiting: 10 };
/** Nice value of its session, with a third and a thirtieth of the weight of value 0. */
const NICE: Readonly<Record<Rank, number>> = { serving: 5, waiting: 15 };
const AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled";

/** On a host whose guests use all its processors, the daemon answers before them. Call it before the process has threads. */
export function giveWay(pid: number, rank: Rank): void {
  try {
    // To raise a process's priority again takes a privilege that the daemon may lack; for a session it does not.
    setPriority(pid, NICE.serving);
  } catch {
    // The process has already ended, which is detected soon, or the host does not permit the change.
  }
  rankSession(pid, rank);
}

/** If sessions are groups to the scheduler, theirs counts against those of others. False if it was not possible now. */
export function rankSession(pid: number, rank: Rank): boolean {
  if (!existsSync(AUTOGROUPS)) return true;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(NICE[rank]));
    return true;
  } catch {
    // Without rights on the whole host the kernel accepts ten a second, from all callers together.
    return false;
  }
}

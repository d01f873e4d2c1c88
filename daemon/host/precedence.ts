/**
 * Owns who comes before whom on the processors: the daemon before its guests, and sandboxes before machines that still wait for one.
 * By the weights of groups (confine) where guests have groups, else by what sessions weigh: each guest's QEMU is one.
 */
import { existsSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";

/** What a machine is there for: somebody's sandbox, or whoever comes. */
export type Rank = "serving" | "waiting";

/** Of its group beside those of others. */
export const CPU_WEIGHT: Readonly<Record<Rank, number>> = { serving: 100, waiting: 10 };
/** The same in what sessions and processes have for it, beside what has 0: a third of its weight, and a thirtieth. */
const NICE: Readonly<Record<Rank, number>> = { serving: 5, waiting: 15 };
const AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled";

/** On a host whose guests take all they can get, the daemon answers before them. To be called before the process has threads. */
export function giveWay(pid: number, rank: Rank): void {
  try {
    // A process cannot be raised again without a right that the daemon may lack; a session can.
    setPriority(pid, NICE.serving);
    rankSession(pid, rank);
  } catch {
    // It has ended already, which is found out soon, or the host does not let us.
  }
}

/** Where sessions are groups to the scheduler, theirs counts against those of others. Throws where there is no such process. */
export function rankSession(pid: number, rank: Rank): void {
  if (existsSync(AUTOGROUPS)) writeFileSync(`/proc/${pid}/autogroup`, String(NICE[rank]));
}

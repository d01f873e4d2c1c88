/**
 * Owns who comes before whom on the processors. Sandboxes come before machines that still wait for one: by the weights of their groups
 * (confine), or where they have none by what sessions weigh, of which each guest's QEMU is one. There the daemon comes before both.
 */
import { existsSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";

/** What a machine is there for: somebody's sandbox, or whoever comes. */
export type Rank = "serving" | "waiting";

/** Of its group beside those of others. */
export const CPU_WEIGHT: Readonly<Record<Rank, number>> = { serving: 100, waiting: 10 };
/** The same of its session beside what has 0: a third of its weight, and a thirtieth. */
const NICE: Readonly<Record<Rank, number>> = { serving: 5, waiting: 15 };
const AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled";

/** On a host whose guests take all they can get, the daemon answers before them. To be called before the process has threads. */
export function giveWay(pid: number, rank: Rank): void {
  try {
    // A process cannot be raised again without a right that the daemon may lack; a session can.
    setPriority(pid, NICE.serving);
  } catch {
    // It has ended already, which is found out soon, or the host does not let us.
  }
  rankSession(pid, rank);
}

/** Where sessions are groups to the scheduler, theirs counts against those of others. False where it could not be done just now. */
export function rankSession(pid: number, rank: Rank): boolean {
  if (!existsSync(AUTOGROUPS)) return true;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(NICE[rank]));
    return true;
  } catch {
    // Without rights of the whole host's the kernel takes ten a second, whoever asks.
    return false;
  }
}

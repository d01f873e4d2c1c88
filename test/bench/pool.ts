/** Detects from outside of the daemon that its warm pool is full: its machines exist, and paused ones use no processor time. */
import { readFileSync } from "node:fs";
import type { TestDaemon } from "../harness/daemon.ts";

/** A template may be saved in this time. */
const DEADLINE_MS = 120_000;
/** A machine that runs, or is still being launched, uses some time within this. */
const REST_MS = 500;

/** Waits until as many machines of the daemon are paused, and there are no others. */
export async function poolAtRest(daemon: TestDaemon, size: number): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  let before = timesUsed(daemon);
  while (performance.now() < deadline) {
    await Bun.sleep(REST_MS);
    const after = timesUsed(daemon);
    if (after.length === size && after.join() === before.join()) return;
    before = after;
  }
  throw new Error(`the warm pool was not at rest with ${size} machines:\n${daemon.log.slice(-4000)}`);
}

/** The processor time that each machine has used, in clock ticks of user and system, with its pid. */
function timesUsed(daemon: TestDaemon): string[] {
  const pids = daemon.leftovers().flatMap((line) => /^process (\d+): \S*qemu/.exec(line)?.[1] ?? []);
  return pids.map((pid) => `${pid}: ${ticksOf(pid)}`);
}

function ticksOf(pid: string): string {
  try {
    // The name in brackets may hold spaces; user and system time are the 12th and 13th field after it.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return `${fields[11]} ${fields[12]}`;
  } catch {
    return "ended";
  }
}

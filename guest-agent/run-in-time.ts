/** Runs a program of the guest with a deadline. Its output goes to a log. */
import { closeSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Reaper } from "./reap.ts";

interface Run {
  argv: string[];
  env: Record<string, string>;
  /** The file to which the process's output is appended. */
  log: string;
  /** By performance.now(). */
  deadline: number;
  reaper: Pick<Reaper, "spare">;
  /** Spawns the process. */
  begin<T>(spawn: () => T): T;
}

/** Resolves to its exit code; null on timeout: then its whole process group is killed. Otherwise its background processes keep running. */
export async function runInTime({ argv, env, log, deadline, reaper, begin }: Run): Promise<number | null> {
  const out = openSync(log, "a", 0o640);
  try {
    const child = begin(() => Bun.spawn(argv, { cwd: "/", env, detached: true, stdio: ["ignore", out, out] }));
    reaper.spare(child);
    const late = new AbortController();
    const inTime = await Promise.race([
      child.exited,
      sleep(Math.max(0, deadline - performance.now()), null, { signal: late.signal }).catch(() => null),
    ]);
    late.abort();
    if (inTime === null) killGroup(child.pid);
    return inTime;
  } finally {
    closeSync(out);
  }
}

/** Killing only the shell would leave its children behind. */
function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // It has just exited, and nothing of its group is left.
  }
}

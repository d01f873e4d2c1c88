/** Owns running a program of the guest's that is to end by a deadline. What it prints goes to a log. */
import { closeSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Reaper } from "./reap.ts";

interface Run {
  argv: string[];
  env: Record<string, string>;
  /** The file to which its output is added. */
  log: string;
  /** By performance.now(). */
  deadline: number;
  reaper: Pick<Reaper, "spare">;
  /** How it is begun. */
  begin<T>(spawn: () => T): T;
}

/** Its exit code; null where its time was up: then all of its process group is ended. Else what it has begun in the background goes on. */
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

/** A shell alone would leave behind what it waits for. */
function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // It has ended just now, and nothing of its group is left.
  }
}

/** Owns ending a daemon that runs on this host, by its lock: nobody needs to know how it was started. */
import { existsSync } from "node:fs";
import type { Paths } from "../core/paths.ts";
import { LockedError, takeLock } from "../host/lock.ts";

const LOOK_MS = 100;

/** Resolves once it has ended, with whether there was one. `onFound` is called before it is told. Throws LockedError when it takes longer. */
export async function endDaemon(
  { daemon_lock }: Pick<Paths, "daemon_lock">,
  deadlineMs: number,
  onFound = () => {},
): Promise<boolean> {
  if (!existsSync(daemon_lock)) return false;
  const deadline = performance.now() + deadlineMs;
  for (let asked = false; ; ) {
    try {
      takeLock(daemon_lock, "runtime_dir")();
      return asked;
    } catch (error) {
      if (!(error instanceof LockedError) || performance.now() > deadline) throw error;
      if (!asked) {
        onFound();
        process.kill(Number(error.holder), "SIGTERM");
      }
      asked = true;
    }
    await Bun.sleep(LOOK_MS);
  }
}

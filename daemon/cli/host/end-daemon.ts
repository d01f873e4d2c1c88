/** Stops a daemon that runs on this host, found by its lock, however it was started. */
import { existsSync } from "node:fs";
import type { Paths } from "../../core/config/paths.ts";
import { LockedError, takeLock } from "../../host/lock.ts";

const LOOK_MS = 100;

/**
 * Resolves after it has ended, with whether there was one. `onFound` is called before the signal is sent. Throws LockedError after the
 * deadline.
 */
export async function endDaemon(
  { daemon_lock }: Pick<Paths, "daemon_lock">,
  deadlineMs: number,
  onFound = () => {},
): Promise<boolean> {
  if (!existsSync(daemon_lock)) return false;
  const deadline = performance.now() + deadlineMs;
  for (let isRequested = false; ; ) {
    try {
      takeLock(daemon_lock, "runtime_dir")();
      return isRequested;
    } catch (error) {
      if (!(error instanceof LockedError) || performance.now() > deadline) throw error;
      if (!isRequested) {
        onFound();
        process.kill(Number(error.holder), "SIGTERM");
      }
      isRequested = true;
    }
    await Bun.sleep(LOOK_MS);
  }
}

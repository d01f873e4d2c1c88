/** Owns starting the daemon itself where there is no service manager: in a session of its own, which outlives its starter. */
import { closeSync, openSync } from "node:fs";

/** Adds its output to `logFile`. Resolves `exited` when it ends while we are here. */
export function startInBackground(
  argv: readonly string[],
  variables: Record<string, string>,
  logFile: string,
): { exited: Promise<number> } {
  const log = openSync(logFile, "a", 0o600);
  try {
    const child = Bun.spawn([...argv], { env: variables, cwd: "/", detached: true, stdio: ["ignore", log, log] });
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

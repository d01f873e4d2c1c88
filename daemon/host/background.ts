/**
 * Starts processes that outlive their starter, in a separate session: the daemon itself on hosts without a service manager, and a browser.
 */
import { closeSync, openSync } from "node:fs";

/** Appends the program's output to `logFile`. `exited` resolves if the program ends before this process. */
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

/** Whether this user has a program of this name. */
export function hasProgram(name: string): boolean {
  return Bun.which(name) !== null;
}

/** Starts a detached program for the user at this host, with the user's environment. Returns false if there is no such program. */
export function startForUser(argv: readonly string[]): boolean {
  const program = Bun.which(argv[0] ?? "");
  if (program === null) return false;
  const [, ...args] = argv;
  Bun.spawn([program, ...args], { env: process.env, detached: true, stdio: ["ignore", "ignore", "ignore"] }).unref();
  return true;
}

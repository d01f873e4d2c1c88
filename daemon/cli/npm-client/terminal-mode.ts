/** Replaces ../../host/terminal-mode.ts in the npm client: a raw terminal by stty(1), on Windows by Node. */
import { spawnSync } from "node:child_process";

/**
 * Makes the terminal of standard input raw and returns a function that restores it. Node's own raw mode still writes a return before every
 * new line, which breaks the output of full-screen programs.
 */
export function makeRaw(fd: number): () => void {
  if (process.platform === "win32") {
    process.stdin.setRawMode(true);
    return () => process.stdin.setRawMode(false);
  }
  const stty = (...args: string[]) => spawnSync("stty", args, { stdio: [fd, "pipe", "inherit"], encoding: "utf8" });
  const before = stty("-g");
  if (before.status !== 0) throw new Error(`descriptor ${fd} is not a terminal`);
  if (stty("raw", "-echo").status !== 0) throw new Error("failed to set the terminal to raw mode");
  let isRaw = true;
  return () => {
    if (isRaw) stty(before.stdout.trim());
    isRaw = false;
  };
}

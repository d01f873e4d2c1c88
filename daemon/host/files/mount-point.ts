/** Whether something is mounted at a directory: it then can be neither removed nor renamed. */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Uses the kernel's mount list, since a bind mount has the same device as its source. The last part of the path may be a link, which is not
 * a mount point.
 */
export function isMountPoint(directory: string): boolean {
  if (!existsSync(dirname(directory))) return false;
  const at = join(realpathSync(dirname(directory)), basename(directory));
  // proc_pid_mountinfo(5): the fifth field, in which separators are octal escapes.
  const word = at.replace(/[ \t\n\\]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, "0")}`);
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  return lines.some((line) => line.split(" ")[4] === word);
}

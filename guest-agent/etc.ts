/** Files in /etc that are written at each start. A link into /run or a directory at their path is replaced. */
import { lstatSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function writeEtc(name: "hostname" | "hosts" | "machine-id" | "resolv.conf", text: string, etc = "/etc"): void {
  const path = join(etc, name);
  mkdirSync(etc, { recursive: true });
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there && !there.isFile()) rmSync(path, { recursive: true, force: true });
  writeFileSync(path, text);
}

/** Owns the files in /etc that each start writes. What a root has in their places, a link into /run or a directory, is replaced. */
import { lstatSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function writeEtc(name: "hostname" | "hosts" | "machine-id" | "resolv.conf", text: string, etc = "/etc"): void {
  const path = join(etc, name);
  mkdirSync(etc, { recursive: true });
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there && !there.isFile()) rmSync(path, { recursive: true, force: true });
  writeFileSync(path, text);
}

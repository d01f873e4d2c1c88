/** The files of this host that changed since a point in time. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Since extends Disposable {
  /** Searches the file systems of /, /tmp and /var/tmp without other mounts, except the paths in `leftOut`. */
  changed(leftOut: readonly string[]): string[];
}

export function since(): Since {
  const stamp = join(mkdtempSync("/tmp/roomd-since-"), "stamp");
  writeFileSync(stamp, "");
  return {
    changed: (leftOut) => {
      const pruned = [...leftOut, dirname(stamp)].flatMap((path) => ["-path", path, "-prune", "-o"]);
      const argv = ["/", "/tmp", "/var/tmp", "-xdev", ...pruned, "!", "-type", "d", "-cnewer", stamp, "-print"];
      const { stdout } = spawnSync("find", argv, { encoding: "utf8", maxBuffer: 64 * 1024 ** 2 });
      return [...new Set(stdout.split("\n"))].filter((path) => path !== "");
    },
    [Symbol.dispose]: () => rmSync(dirname(stamp), { recursive: true }),
  };
}

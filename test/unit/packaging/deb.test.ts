/** packaging/deb: the contents of the package, and that the same commit gives the same file in any checkout directory. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const LONG = process.env.ROOMD_TEST_LONG === "1";

/** The package of a clone at HEAD, in a separate directory. */
function packageOf(directory: string): string {
  execFileSync("git", ["clone", "-q", resolve("."), directory]);
  cpSync("node_modules", join(directory, "node_modules"), { recursive: true, verbatimSymlinks: true });
  execFileSync(join(directory, "packaging/deb"), { cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
  const [name = ""] = readdirSync(join(directory, "dist")).filter((each) => each.endsWith(".deb"));
  return join(directory, "dist", name);
}

test("the same commit gives the same package, byte for byte", { timeout: 300_000 }, (context) => {
  if (!LONG) return context.skip("it builds roomd twice: ROOMD_TEST_LONG=1 does");
  const scratch = mkdtempSync("/tmp/roomd-t-");
  try {
    const packages = [packageOf(join(scratch, "a")), packageOf(join(scratch, "another/place"))];
    const [first, second] = packages.map((file) => createHash("sha256").update(readFileSync(file)).digest("hex"));
    expect(second).toBe(first);
    const paths = execFileSync("dpkg-deb", ["-c", packages[0] ?? ""], { encoding: "utf8" });
    for (const path of [
      "/usr/bin/roomd ->",
      "/usr/lib/systemd/system/roomd.service",
      "/usr/share/man/man1/roomd.1.gz",
    ]) {
      expect(paths).toContain(path);
    }
    expect(paths).toMatch(/bash-completion\/completions\/roomd\n/);
    // Only paths that a package may own, all of them owned by root.
    const lines = paths.trimEnd().split("\n");
    expect(lines.filter((line) => !/ \.\/(usr\/(.*)?)?$| \.\/usr\/bin\/roomd -> /.test(line))).toEqual([]);
    expect(lines.filter((line) => !line.includes(" root/root "))).toEqual([]);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
});

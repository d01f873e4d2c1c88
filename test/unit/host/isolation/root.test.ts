/** The root file system of a QEMU: visible and hidden parts for a process that has changed to it. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asUserWithin } from "../../../../daemon/host/isolation/argv.ts";
import { inspectIsolation } from "../../../../daemon/host/isolation/inspect.ts";
import { directoriesOf, makeOwnRoot, outermost } from "../../../../daemon/host/isolation/root.ts";

const USER = { uid: 1_967_128_576, groups: [] };
let home: string;
const umask = process.umask();
beforeEach(() => {
  // As the service has it.
  process.umask(0o077);
  home = mkdtempSync(join(tmpdir(), "roomd root \\ "));
  for (const name of ["own", "shown", "other"]) {
    mkdirSync(join(home, name));
    writeFileSync(join(home, name, "file"), name);
  }
  opened(home);
});
afterEach(() => {
  process.umask(umask);
  rmSync(home, { recursive: true, force: true });
});

const opened = (path: string) => spawnSync("chmod", ["--recursive", "777", path]);
const root = () => ({ directory: join(home, "root"), table: join(home, "mounts") });

test.each([
  [
    ["/a/b", "/a", "/a/b/c", "/ab"],
    ["/a", "/ab"],
  ],
  [["/a", "/a"], ["/a"]],
  [[], []],
])("of %j the outermost are %j", (directories, expected) => {
  expect(outermost(directories)).toEqual(expected);
});

test("links add their target directories; missing files add none", async () => {
  symlinkSync(join(home, "other", "file"), join(home, "own", "link"));
  const files = [join(home, "own", "link"), join(home, "shown", "file"), join(home, "none", "file")];
  expect(await directoriesOf(files)).toEqual([join(home, "own"), join(home, "other"), join(home, "shown")]);
});

const isRoot = process.geteuid?.() === 0;
if (!isRoot) console.warn("only root makes mount namespaces: those tests are left out");

describe.skipIf(!isRoot)("a process with its own root", () => {
  const run = (script: string) => {
    const [program = "", ...argv] = asUserWithin(root(), USER, ["sh", "-c", script]);
    const { status, stdout, stderr } = spawnSync(program, argv, { encoding: "utf8", cwd: "/" });
    return { status, stdout, stderr };
  };
  const make = () =>
    makeOwnRoot(root(), "qemu", {
      writable: [join(home, "own")],
      readOnly: [join(home, "shown"), join(home, "missing")],
    });

  test("sees its directories and the host's programs, but no process, home or other directory", async () => {
    await make();
    const { status, stdout, stderr } = run(
      `cd "${home}" && ls && cat own/file shown/file && ls -A /proc /old && ls /etc /dev && ls -d /home /root /tmp/* 2>&1`,
    );
    expect([status, stderr]).toEqual([2, ""]);
    const lines = stdout.split("\n");
    expect(lines.slice(0, 2)).toEqual(["own", "shown"]);
    expect(stdout).toContain("ownshown/old:\n\n/proc:\n/dev:\n");
    expect(stdout).toContain("null\n");
    expect(stdout).not.toMatch(/passwd|shadow|sda|vda|mem\n/);
    expect(lines.filter((line) => /No such file/.test(line))).toHaveLength(2);
    expect(lines.filter((line) => line.startsWith("/tmp/"))).toEqual([home]);
  });

  test("can write only its own directories", async () => {
    await make();
    const { stdout } = run(
      `cd "${home}"; for at in own shown . / /etc /old /usr; do (: >"$at/made") 2>/dev/null && echo "$at"; done`,
    );
    expect(stdout).toBe("own\n");
    expect(readFileSync(join(home, "own", "made"), "utf8")).toBe("");
  });

  test("sees later additions to its directories; nothing is mounted on the host, and all can be removed", async () => {
    await make();
    const [program = "", ...argv] = asUserWithin(root(), USER, ["sh", "-c", `read -r _; cat "${home}/own/later/file"`]);
    const child = Bun.spawn([program, ...argv], { stdin: "pipe", stdout: "pipe", cwd: "/" });
    mkdirSync(join(home, "own", "later"));
    writeFileSync(join(home, "own", "later", "file"), "late");
    opened(join(home, "own"));
    child.stdin.write("go\n");
    await child.stdin.end();
    expect(await new Response(child.stdout).text()).toBe("late");
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain("root\\040");
    rmSync(root().directory, { recursive: true });
    expect(readdirSync(join(home, "own")).sort()).toEqual(["file", "later"]);
  });

  test("does not start if a mount fails", async () => {
    await make();
    writeFileSync(root().table, `/none ${join(home, "root", "old").replace(/[\s\\]/g, "?")} none bind 0 0\n`);
    expect(run("echo started").stdout).toBe("");
  });

  test("is detected as possible on this host, and no trial file remains", async () => {
    const found = await inspectIsolation({ base: 1_900_019_712, places: [], scratch: home });
    expect([found.problems, found.mounts]).toEqual([[], true]);
    expect(readdirSync(home).filter((name) => name.startsWith("mount-probe"))).toEqual([]);
  });
});

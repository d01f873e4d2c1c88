/** Leftovers of a killed template build are removed once another starts, and no two builds run concurrently. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths, type Paths } from "../../../../daemon/core/config/paths.ts";
import {
  sweepDeadBuilds,
  sweepOwnMachines,
  whileBuilding,
} from "../../../../daemon/domain/templates/build-sandboxes.ts";
import { isAlive, processOf } from "../../../../daemon/host/process.ts";
import { newId } from "../../../../shared/ids.ts";
import { commandLineOf, until } from "../../../harness/guests.ts";

let home: string;
let paths: Paths;
let child: ChildProcess | undefined;

beforeEach(() => {
  home = mkdtempSync("/tmp/roomd-u-");
  paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") });
  mkdirSync(paths.data);
});
afterEach(() => {
  child?.kill("SIGKILL");
  child = undefined;
  rmSync(home, { recursive: true, force: true });
});

/** Leftovers of a killed build: directories, and a process that serves its guest. */
async function leftBehind() {
  const trial = paths.trial(newId("sbx"));
  for (const directory of [trial.directory, trial.runtime]) mkdirSync(directory, { recursive: true });
  child = spawn("sh", ["-c", "while :; do read -r line; done", "--socket-path", trial.virtiofs], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const { pid = 0 } = child;
  await until("the process's arguments are set", () => commandLineOf(pid).includes(trial.virtiofs));
  const process = processOf(pid);
  if (!process) throw new Error("it has ended");
  const isThere = () => ({
    process: isAlive(process),
    files: [trial.directory, trial.runtime].filter((directory) => existsSync(directory)).length,
  });
  return isThere;
}

test("the next build removes leftovers of a killed one before it starts", async () => {
  const isThere = await leftBehind();
  expect(isThere()).toEqual({ process: true, files: 2 });
  expect(await whileBuilding(paths, async () => isThere())).toEqual({ process: false, files: 0 });
});

test("a starting daemon removes them too, but nothing of a running build", async () => {
  const isThere = await whileBuilding(paths, async () => {
    const trial = await leftBehind();
    await sweepDeadBuilds(paths);
    expect(trial()).toEqual({ process: true, files: 2 });
    return trial;
  });
  await sweepDeadBuilds(paths);
  expect(isThere()).toEqual({ process: false, files: 0 });
});

test("machines started during the sweep are left alone, and those without directories are not", async () => {
  const own = paths.film(newId("sbx"));
  const sweep = sweepOwnMachines(paths);
  for (const directory of [own.directory, own.runtime]) mkdirSync(directory, { recursive: true });
  await sweep;
  expect([own.directory, own.runtime].map((directory) => existsSync(directory))).toEqual([true, true]);
  // If cleanup was interrupted, the process may be the only leftover.
  const isThere = await leftBehind();
  const [name = ""] = readdirSync(dirname(paths.trial("any").runtime));
  for (const directory of [paths.trial(name).directory, paths.trial(name).runtime])
    rmSync(directory, { recursive: true });
  await sweepDeadBuilds(paths);
  expect(isThere()).toEqual({ process: false, files: 0 });
});

test("a version created after its directory was scanned is left alone", async () => {
  const home = join(paths.templates_of(null), "default");
  const [before, after] = ["0".repeat(25), "0".repeat(24)].map((zeros) => join(home, zeros.padEnd(26, "1"))) as [
    string,
    string,
  ];
  mkdirSync(before, { recursive: true });
  const sweeping = sweepDeadBuilds(paths);
  mkdirSync(after);
  await sweeping;
  expect([before, after].map((version) => existsSync(version))).toEqual([false, true]);
});

test("a second build waits for the first, and precedes later requests", async () => {
  const order: string[] = [];
  const waits: string[] = [];
  const waiting = Promise.withResolvers<void>();
  const later: Promise<unknown>[] = [];
  const build = (name: string, onWait?: () => void) =>
    whileBuilding(
      paths,
      async () => void order.push(name),
      (holder) => {
        waits.push(`${name} for ${holder}`);
        onWait?.();
      },
    );
  await whileBuilding(paths, async () => {
    order.push("first");
    later.push(build("second", waiting.resolve));
    await waiting.promise;
    for (const name of ["third", "fourth"]) {
      const hasAsked = Promise.withResolvers<void>();
      later.push(build(name, hasAsked.resolve));
      await hasAsked.promise;
    }
    expect([order, waits[0]]).toEqual([["first"], `second for ${process.pid}`]);
  });
  await Promise.all(later);
  expect(order.slice(0, 2)).toEqual(["first", "second"]);
  expect(order.toSorted()).toEqual(["first", "fourth", "second", "third"]);
  // The lock goes also with a build that failed.
  await expect(whileBuilding(paths, () => Promise.reject(new Error("no disk")))).rejects.toThrow("no disk");
  expect(await whileBuilding(paths, async () => "built")).toBe("built");
});

test("versions of a killed build are deleted, and current and former ones stay", async () => {
  const version = (name: string) => name.padEnd(26, "0");
  const make = (template: string, names: string[]) => {
    for (const name of names) mkdirSync(join(paths.template(template), name), { recursive: true });
  };
  const [oldest, former, current, later] = [version("019"), version("01a"), version("01b"), version("01c")];
  make("published", [oldest, former, current, later, "by-hand"]);
  symlinkSync(current, join(paths.template("published"), "current"));
  symlinkSync(later, join(paths.template("published"), `.current-${later}`));
  make("never", [former]);
  make("by-hand", ["v1"]);
  symlinkSync("v1", join(paths.template("by-hand"), "current"));
  const elsewhere = join(home, "elsewhere");
  mkdirSync(join(elsewhere, later), { recursive: true });
  symlinkSync(elsewhere, paths.template("linked"));
  await sweepDeadBuilds(paths);
  const names = (template: string) => readdirSync(paths.template(template)).sort();
  expect(names("published")).toEqual([former, current, "by-hand", "current"]);
  expect(names("never")).toEqual([]);
  expect(names("by-hand")).toEqual(["current", "v1"]);
  expect(names("linked")).toEqual([later]);
});

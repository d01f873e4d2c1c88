/** Host resources that belong to no sandbox are removed, and the removal is logged; those of another daemon are left alone. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../shared/ids.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";

let daemon: TestDaemon;
const children: ChildProcess[] = [];

beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_RECONCILE_INTERVAL: "1s", ROOMD_POOL_SIZE: "0" } });
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await daemon.stop();
});

/** A process that looks like a guest's virtiofsd with this socket. */
function pretendedShare(socket: string): ChildProcess {
  const child = spawn("sh", ["-c", "while :; do read -r line; done", "--socket-path", socket], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  children.push(child);
  return child;
}

const ended = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

test("processes, sockets and directories without a sandbox are removed; those of another daemon stay", async () => {
  const [orphaned, found, template] = [newId("sbx"), newId("sbx"), newId("sbx")];
  const shareOf = (id: string) => pretendedShare(join(daemon.runtimeDir, "g", id, "fs", "drive.sock"));
  // On start the daemon also sweeps leftovers of builds.
  const first = shareOf(newId("sbx"));
  await until("a reconcile pass is done", () => ended(first));
  const trial = pretendedShare(join(daemon.runtimeDir, "t", template, "fs", "drive.sock"));
  const other = pretendedShare(join(`${daemon.runtimeDir}2`, "g", orphaned, "fs", "drive.sock"));
  const own = shareOf(orphaned);
  const directories = [join(daemon.runtimeDir, "g", found), join(daemon.dataDir, "sandboxes", found)];
  for (const directory of directories) mkdirSync(directory, { recursive: true });
  writeFileSync(join(daemon.dataDir, "sandboxes", found, "disk.qcow2"), "left");

  await until("the process has exited", () => ended(own));
  await until("the directories are removed", () => !directories.some((directory) => existsSync(directory)));
  // Each pass examines them too.
  expect([ended(trial), ended(other)]).toEqual([false, false]);
  await until("the findings are logged", () => [orphaned, found].every((id) => daemon.log.includes(id)));
});

test("a daemon sweeps at its start after a kill, within a minute", async () => {
  daemon.env.ROOMD_RECONCILE_INTERVAL = "1h";
  await daemon.end("SIGKILL");
  const left = pretendedShare(join(daemon.runtimeDir, "g", newId("sbx"), "fs", "drive.sock"));
  await daemon.serve();
  await until("the process has exited", () => ended(left));
});

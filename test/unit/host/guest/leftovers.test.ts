/** Leftovers of a guest on the host are found by their names, and only those of this daemon. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { makePaths, type SandboxPaths } from "../../../../daemon/core/config/paths.ts";
import {
  endProcesses,
  freeLeftovers,
  guestProcesses,
  hasLeftovers,
  servedBy,
} from "../../../../daemon/host/guest/leftovers.ts";
import { readRecord } from "../../../../daemon/host/guest/record.ts";
import { setUidBase } from "../../../../daemon/host/isolation/own-users.ts";
import { isAlive, processOf } from "../../../../daemon/host/process.ts";
import { newId } from "../../../../shared/ids.ts";
import { commandLineOf, until } from "../../../harness/guests.ts";

const ID = "sbx_01ARZ3NDEKTSV4RRFFQ69G5FAV";

test.each([
  [["qemu", "-chardev", `socket,id=qmp,path=/run/roomd/g/${ID}/qmp.sock,server=on`], ID],
  [["ld-linux", "virtiofsd", "--shared-dir", "/data", "--socket-path", `/run/roomd/g/${ID}/fs.sock`], ID],
  [["vhost-device-vsock", "--guest-cid", "9100", "--socket", `/run/roomd/g/${ID}/vsock-device.sock`], ID],
  // Another daemon's, a template's trial, and a longer name.
  [["qemu", "-chardev", `socket,id=qmp,path=/run/other/g/${ID}/qmp.sock,server=on`], null],
  [["qemu", "-chardev", `socket,id=qmp,path=/run/roomd/t/${ID}/qmp.sock,server=on`], null],
  [["qemu", "-chardev", `socket,id=qmp,path=/run/roomd/g2/${ID}/qmp.sock,server=on`], null],
  // Processes that only read.
  [["tail", "-f", `/run/roomd/g/${ID}/vmm.log`], null],
  [["socat", "-", `UNIX-CONNECT:/run/roomd/g/${ID}/qmp.sock`], null],
  [["virtiofsd", "--socket-path", "/run/roomd/g/something/fs.sock"], null],
  [[], null],
])("%j serves %s", (argv, expected) => {
  expect(servedBy(argv, "/run/roomd/g")).toBe(expected);
});

test("a comma in a directory's name is doubled for QEMU, and parsed back", () => {
  const argv = ["qemu", "-chardev", `socket,id=qmp,path=/run/a,,b/g/${ID}/qmp.sock,server=on`];
  expect(servedBy(argv, "/run/a,b/g")).toBe(ID);
});

let home: string;
let paths: SandboxPaths;
const children: ChildProcess[] = [];

beforeEach(() => {
  home = mkdtempSync("/tmp/roomd-u-");
  paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") }).sandbox(newId("sbx"));
  for (const directory of [paths.directory, paths.runtime]) mkdirSync(directory, { recursive: true });
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

/** A process with these arguments, leader of its group as guests' processes are. */
async function started(...argv: string[]): Promise<number> {
  return await startedBy(null, ...argv);
}

async function startedBy(uid: number | null, ...argv: string[]): Promise<number> {
  const pid = begun(uid, ...argv);
  // A process is there a moment before its arguments are.
  await until("the process's arguments are set", () => commandLineOf(pid).includes(argv.at(-1) ?? ""));
  return pid;
}

function begun(uid: number | null, ...argv: string[]): number {
  const child = spawn("sh", ["-c", "while :; do read -r line; done", ...argv], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    ...(uid === null ? {} : { uid, cwd: "/" }),
  });
  children.push(child);
  return child.pid ?? 0;
}

const alive = (pid: number) => processOf(pid) !== null;

test("other users' processes are ignored, for any arguments", async () => {
  const base = 1_900_019_712;
  setUidBase(base);
  try {
    const forged = await startedBy(65_534, "--socket", paths.vsock_device);
    const own = await started("--socket-path", paths.virtiofs);
    const guests = await startedBy(base + 65_536, "--socket", paths.vsock_device);
    const found = (await guestProcesses(dirname(paths.runtime))).get(basename(paths.runtime)) ?? [];
    expect(found.map(({ pid }) => pid).sort()).toEqual([own, guests].sort());
    await endProcesses(paths);
    expect([own, guests, forged].map(alive)).toEqual([false, false, true]);
  } finally {
    setUidBase(null);
  }
});

test("processes are found by their sockets, stopped or not, and ended; others are left alone", async () => {
  const own = await started("--socket-path", paths.virtiofs);
  const stopped = await started("-chardev", `socket,id=qmp,path=${paths.qmp},server=on`);
  process.kill(stopped, "SIGSTOP");
  const other = await started("--socket-path", "/run/roomd-elsewhere/g/x/fs.sock");
  const found = await guestProcesses(join(home, "run", "g"));
  expect([...found.keys()]).toHaveLength(1);
  expect(
    [...found.values()]
      .flat()
      .map(({ pid }) => pid)
      .sort(),
  ).toEqual([own, stopped].sort());
  await endProcesses(paths);
  expect([own, stopped, other].map(alive)).toEqual([false, false, true]);
  await endProcesses(paths);
});

test("a process started during the scan is found; others have turns, and callers share the next scan", async () => {
  const guests = join(home, "run", "g");
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  const there = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).length;
  // Each process is a piece of its own, as on a slow host.
  let now = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => {
    now += 3;
    return now;
  });
  const first = guestProcesses(guests).finally(() => {
    isOver = true;
  });
  count();
  // The scan starts with a process that was there before.
  await Promise.resolve();
  const pid = begun(null, "--socket-path", paths.virtiofs);
  while (!commandLineOf(pid).includes(paths.virtiofs));
  const [second, third] = [guestProcesses(guests), guestProcesses(guests)];
  expect(second).toBe(third);
  const pidsOf = async (found: typeof second) => [...(await found).values()].flat().map((process) => process.pid);
  expect([await pidsOf(first), await pidsOf(second)]).toEqual([[pid], [pid]]);
  clock.mockRestore();
  expect(turns).toBeGreaterThanOrEqual(Math.floor(there / 40));
});

test("a recorded process is ended by pid and start, and not another process with its pid", async () => {
  const recorded = await started("without", "a", "socket");
  const reused = await started("is", "somebody", "else");
  const process = processOf(recorded);
  expect(process && isAlive(process)).toBe(true);
  const record = { sandbox_id: "", guest_cid: 9100, mode: "snapshot", nonce: null };
  writeFileSync(
    paths.processes,
    JSON.stringify({ ...record, qemu: process, virtiofsd: { pid: reused, start_ticks: "1" }, vsock: null }),
  );
  await endProcesses(paths);
  expect([recorded, reused].map(alive)).toEqual([false, true]);
});

test("a process of another boot is never signalled, even if another process has its pid and start", async () => {
  const innocent = await started("has", "the", "same", "numbers");
  const process = processOf(innocent);
  const record = { sandbox_id: "", guest_cid: 9100, mode: "snapshot", nonce: null, virtiofsd: process, vsock: process };
  const write = (boot_id: string) =>
    writeFileSync(paths.processes, JSON.stringify({ ...record, boot_id, qemu: process }));
  write("00000000-0000-0000-0000-000000000000");
  expect(readRecord(paths.processes)).toMatchObject({ guest_cid: 9100, qemu: null, virtiofsd: null, vsock: null });
  await endProcesses(paths);
  expect(alive(innocent)).toBe(true);
  // Of this boot it is the recorded one.
  write(readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  await endProcesses(paths);
  expect(alive(innocent)).toBe(false);
});

test("freeing removes all except the logs, and a second call does nothing", async () => {
  for (const file of [paths.overlay, paths.processes, paths.vmm_log]) writeFileSync(file, "");
  expect(hasLeftovers(paths)).toBe(true);
  await freeLeftovers(paths);
  await freeLeftovers(paths);
  expect([hasLeftovers(paths), existsSync(paths.vmm_log), existsSync(paths.runtime)]).toEqual([false, true, false]);
});

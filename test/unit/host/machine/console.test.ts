import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ConsoleLog, readConsole } from "../../../../daemon/host/machine/console.ts";

const all = () => true;

function written(text: string) {
  const path = mkdtempSync(join(tmpdir(), "roomd-console-"));
  const log = new ConsoleLog(path);
  log.append(Buffer.from(text));
  log.close();
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test("lines come with their places, and the next reading goes on after them", () => {
  using log = written("one\r\ntwo\nthr");
  const first = readConsole(log.path, 0, 1, all);
  expect(first).toEqual({ lines: [{ offset: 0, line: "one" }], next: 5 });
  expect(readConsole(log.path, first.next, 9, all)).toEqual({ lines: [{ offset: 5, line: "two" }], next: 9 });
  expect(readConsole(log.path, 9, 9, all)).toEqual({ lines: [], next: 9 });
});

test("the limit counts what is wanted, however much lies between", () => {
  const noise = "kernel: noise\n".repeat(5000);
  using log = written(`${noise}agent: a\n${noise}agent: b\n${noise}agent: c\n`);
  const isWanted = (line: string) => line.startsWith("agent: ");
  const { lines, next } = readConsole(log.path, 0, 2, isWanted);
  expect(lines.map(({ line }) => line)).toEqual(["agent: a", "agent: b"]);
  expect(readConsole(log.path, next, 2, isWanted).lines.map(({ line }) => line)).toEqual(["agent: c"]);
});

/** A disk of this many KiB with a log on it; null, and why not is said, where none can be mounted. */
function onSmallDisk(kib: number) {
  const disk = mkdtempSync(join(tmpdir(), "roomd-console-"));
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${kib}k`, "tmpfs", disk]);
  const clean = () => {
    if (status === 0) spawnSync("umount", ["--lazy", disk]);
    rmSync(disk, { recursive: true, force: true });
  };
  if (status !== 0) {
    clean();
    console.log(`skipped: no tmpfs can be mounted here: ${stderr}`);
    return null;
  }
  const path = join(disk, "console");
  mkdirSync(path);
  const log = new ConsoleLog(path);
  const fill = (bytes: number) => writeFileSync(join(disk, "other"), Buffer.alloc(bytes));
  const linesFrom = (offset: number) => readConsole(path, offset, 9999, all).lines.map(({ line }) => line);
  const dispose = () => {
    log.close();
    clean();
  };
  return { path, log, fill, linesFrom, [Symbol.dispose]: dispose };
}

test("a full disk costs what is printed meanwhile, and no more", ({ skip }) => {
  using disk = onSmallDisk(64);
  if (!disk) return skip("no tmpfs");
  const { log, path, fill } = disk;
  log.append(Buffer.from("before\n"));
  fill(56 * 1024);
  // The first does not fit as a whole, the others not at all.
  for (let piece = 0; piece < 3; piece++) log.append(Buffer.alloc(8 * 1024, "lost\n"));
  fill(0);
  const size = statSync(join(path, "000000000000000.log")).size;
  log.append(Buffer.from("\nafter\n"));
  const lines = disk.linesFrom(0);
  expect([lines[0], lines.at(-1)]).toEqual(["before", "after"]);
  // Its size is what is there: the next reading goes on from where it is.
  expect(readConsole(path, size + 1, 9, all)).toEqual({
    lines: [{ offset: size + 1, line: "after" }],
    next: size + 1 + "after\n".length,
  });
});

test("segments follow each other without a gap after a disk was full", ({ skip }) => {
  using disk = onSmallDisk(1256);
  if (!disk) return skip("no tmpfs");
  const { log, path, fill } = disk;
  fill(500 * 1024);
  for (let piece = 0; piece < 10; piece++) log.append(Buffer.alloc(100 * 1024, "x\n"));
  fill(0);
  for (let piece = 0; piece < 3; piece++) log.append(Buffer.alloc(100 * 1024, "y\n"));
  const { size } = statSync(join(path, "000000000000000.log"));
  log.append(Buffer.from("after\n"));
  // The second begins where the first ends.
  expect(statSync(join(path, `${String(size).padStart(15, "0")}.log`)).size).toBe("after\n".length);
  expect(disk.linesFrom(size)).toEqual(["after"]);
});

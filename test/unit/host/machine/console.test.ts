import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loopTime, Pieces } from "../../../../daemon/core/loop/index.ts";
import { ConsoleLog, readConsole } from "../../../../daemon/host/machine/console.ts";

const pieces = () => new Pieces(loopTime, "org:org_1", "sandbox_logs");

function written(text: string) {
  const path = mkdtempSync(join(tmpdir(), "roomd-console-"));
  const log = new ConsoleLog(path);
  log.append(Buffer.from(text));
  log.close();
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test("lines have their offsets, and the next read continues after them", async () => {
  using log = written("one\r\ntwo\nthr");
  const first = await readConsole(log.path, 0, { limit: 1, pieces: pieces() });
  expect(first).toEqual({ lines: [{ offset: 0, line: "one" }], next: 5 });
  expect(await readConsole(log.path, first.next, { limit: 9, pieces: pieces() })).toEqual({
    lines: [{ offset: 5, line: "two" }],
    next: 9,
  });
  expect(await readConsole(log.path, 9, { limit: 9, pieces: pieces() })).toEqual({ lines: [], next: 9 });
});

test("the limit counts matching lines, for any number of others between them", async () => {
  const noise = "kernel: noise\n".repeat(5000);
  using log = written(`${noise}agent: a\n${noise}agent: b\n${noise}agent: c\n`);
  const { lines, next } = await readConsole(log.path, 0, { limit: 2, prefix: "agent: ", pieces: pieces() });
  expect(lines.map(({ line }) => line)).toEqual(["agent: a", "agent: b"]);
  const last = await readConsole(log.path, next, { limit: 2, prefix: "agent: ", pieces: pieces() });
  expect(last.lines.map(({ line }) => line)).toEqual(["agent: c"]);
  expect(await readConsole(log.path, last.next, { limit: 2, prefix: "agent: ", pieces: pieces() })).toEqual({
    lines: [],
    next: last.next,
  });
});

test("a response ends after 256 KiB, and a long line is cut", async () => {
  const long = "x".repeat(700 * 1024);
  using log = written(`${long}\nshort\n${`${"y".repeat(8000)}\n`.repeat(60)}end\n`);
  const first = await readConsole(log.path, 0, { limit: 1000, pieces: pieces() });
  expect(first.lines[0]?.line).toBe(`${"x".repeat(8 * 1024)}…`);
  const read = [...first.lines];
  for (let { next, lines } = first; lines.length > 0; ) {
    ({ next, lines } = await readConsole(log.path, next, { limit: 1000, pieces: pieces() }));
    expect(lines.reduce((sum, { line }) => sum + line.length, 0)).toBeLessThan(256 * 1024 + 8 * 1024 + 1);
    read.push(...lines);
  }
  expect([read.length, read[1]?.line, read.at(-1)?.line]).toEqual([63, "short", "end"]);
});

/** A disk of this many KiB with a log on it; prints the reason and returns null if none can be mounted. */
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
  const linesFrom = async (offset: number) =>
    (await readConsole(path, offset, { limit: 9999, pieces: pieces() })).lines.map(({ line }) => line);
  const dispose = () => {
    log.close();
    clean();
  };
  return { path, log, fill, linesFrom, [Symbol.dispose]: dispose };
}

test("a full disk loses only the lines printed while it is full", async ({ skip }) => {
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
  const lines = await disk.linesFrom(0);
  expect([lines[0], lines.at(-1)]).toEqual(["before", "after"]);
  // Its size is the stored bytes: the next read continues from there.
  expect(await readConsole(path, size + 1, { limit: 9, pieces: pieces() })).toEqual({
    lines: [{ offset: size + 1, line: "after" }],
    next: size + 1 + "after\n".length,
  });
});

test("segments follow each other without a gap after a disk was full", async ({ skip }) => {
  using disk = onSmallDisk(1256);
  if (!disk) return skip("no tmpfs");
  const { log, path, fill } = disk;
  fill(500 * 1024);
  for (let piece = 0; piece < 10; piece++) log.append(Buffer.alloc(100 * 1024, "x\n"));
  fill(0);
  for (let piece = 0; piece < 3; piece++) log.append(Buffer.alloc(100 * 1024, "y\n"));
  const { size } = statSync(join(path, "000000000000000.log"));
  log.append(Buffer.from("after\n"));
  // The second starts at the end of the first.
  expect(statSync(join(path, `${String(size).padStart(15, "0")}.log`)).size).toBe("after\n".length);
  expect(await disk.linesFrom(size)).toEqual(["after"]);
});

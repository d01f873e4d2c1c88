/** Holes of a machine's memory, on memory of this process that looks like QEMU's: they are there again after everything was read. */
import { dlopen, ptr } from "bun:ffi";
import { closeSync, fstatSync, ftruncateSync, readSync, writeSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { punchHole } from "../../../../daemon/host/files/libc.ts";
import { MemoryHoles } from "../../../../daemon/host/machine/memory-holes.ts";
import { processOf } from "../../../../daemon/host/process.ts";

const PAGE = 4096;
const { symbols: libc } = dlopen("libc.so.6", {
  memfd_create: { args: ["ptr", "u32"], returns: "i32" },
  fallocate: { args: ["i32", "i32", "i64", "i64"], returns: "i32" },
});
const made: number[] = [];
afterEach(() => made.splice(0).forEach(closeSync));

/** A machine's memory of this number of pages, none of which is allocated. */
function memory(pages: number, name = "memory-backend-memfd"): number {
  const cString = Buffer.from(`${name}\0`);
  const file = libc.memfd_create(ptr(cString), 0);
  made.push(file);
  ftruncateSync(file, pages * PAGE);
  return file;
}

/** All pages are there afterwards, as they are when QEMU has read them by its mapping. */
const touchAll = (file: number) => expect(libc.fallocate(file, 0, 0, fstatSync(file).size)).toBe(0);
const pagesOf = (file: number) => (fstatSync(file).blocks * 512) / PAGE;
const writePage = (file: number, page: number) => writeSync(file, Buffer.alloc(PAGE, page + 1), 0, PAGE, page * PAGE);
const ourselves = () => processOf(process.pid) ?? { pid: 0, start_ticks: "" };

function firstByteOf(file: number, page: number): number {
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, page * PAGE);
  return byte[0] ?? -1;
}

test("existing pages stay, and missing pages are missing again", async () => {
  const [base, plugged, other] = [memory(512), memory(2048), memory(16, "other")];
  for (const page of [0, 3, 4, 300, 511]) writePage(base, page);
  writePage(plugged, 1000);
  using holes = new MemoryHoles(ourselves(), null);
  await holes.note();
  for (const file of [base, plugged, other]) touchAll(file);
  await holes.restore();
  expect([base, plugged, other].map(pagesOf)).toEqual([5, 1, 16]);
  expect([0, 1, 3, 4, 5, 300, 511].map((page) => firstByteOf(base, page))).toEqual([1, 0, 4, 5, 0, 45, 0]);
});

test("memory without holes stays whole, and pages lost in the meantime are no error", async () => {
  const full = memory(64);
  for (let page = 0; page < 64; page++) writePage(full, page);
  using holes = new MemoryHoles(ourselves(), null);
  await holes.note();
  punchHole(full, 0, PAGE);
  await holes.restore();
  expect(pagesOf(full)).toBe(63);
});

test("scattered memory is returned up to a limit", async () => {
  const pages = 2 * 70_000;
  const scattered = memory(pages);
  for (let page = 0; page < pages; page += 2) writeSync(scattered, Buffer.of(1), 0, 1, page * PAGE);
  using holes = new MemoryHoles(ourselves(), null);
  await holes.note();
  touchAll(scattered);
  await holes.restore();
  expect(pagesOf(scattered)).toBe(pages - 65_536);
});

test("a machine that has exited has none", () => {
  expect(() => new MemoryHoles({ ...ourselves(), start_ticks: "1" }, null)).toThrow("has ended");
});

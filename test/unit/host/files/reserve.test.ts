/** The reserve: real blocks, released piece by piece, allocated again. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Reserve } from "../../../../daemon/host/files/reserve.ts";

const SIZE = 4 * 1024 ** 2;
let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-reserve-"));
  file = join(directory, "reserve");
});
afterEach(() => rmSync(directory, { recursive: true }));

const onDisk = () => statSync(file).blocks * 512;

test("holds the given number of blocks, releases all in pieces, and allocates them again", () => {
  const reserve = new Reserve(file, SIZE + 1);
  expect(reserve.held_bytes).toBe(0);
  reserve.fill();
  expect([reserve.size_bytes, reserve.held_bytes, onDisk()]).toEqual([SIZE, SIZE, SIZE]);
  const left: number[] = [];
  while (reserve.giveUp()) left.push(onDisk());
  expect(left.length).toBeGreaterThanOrEqual(16);
  expect(left).toEqual([...left].sort((a, b) => b - a));
  expect([left.at(-1), reserve.giveUp()]).toEqual([0, false]);
  reserve.fill();
  expect(onDisk()).toBe(SIZE);
  reserve.close();
});

test("is found as it was left, and follows a changed size", () => {
  const first = new Reserve(file, SIZE);
  first.fill();
  first.giveUp();
  first.close();
  const second = new Reserve(file, SIZE);
  expect(second.held_bytes).toBeLessThan(SIZE);
  second.fill();
  expect(second.held_bytes).toBe(SIZE);
  second.close();
  const smaller = new Reserve(file, SIZE / 2);
  smaller.fill();
  expect(onDisk()).toBe(SIZE / 2);
  smaller.close();
});

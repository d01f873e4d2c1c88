/** The walk over a tree of any shape: each entry once, a few descriptors, whatever a guest changes during it. */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Beneath } from "../../../../daemon/host/files/beneath.ts";
import { eraseDirectory } from "../../../../daemon/host/files/erase.ts";
import { LEVELS_HELD, walk } from "../../../../daemon/host/files/walk.ts";
import { makeNest } from "../../../harness/nest.ts";

let directory: string;
let root: Beneath;
beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "roomd-walk-")), "tree");
  mkdirSync(directory);
  root = Beneath.open(directory);
});
afterEach(async () => {
  root[Symbol.dispose]();
  await eraseDirectory(join(directory, ".."), () => false);
}, 120_000);

const openFiles = () => readdirSync("/proc/self/fd").length;
const inATree = (...levels: string[]) => join(directory, ...levels);

test("visits every entry once, at any depth, with a bounded number of descriptors", async () => {
  const levels = 20_000;
  (await makeNest(directory, levels, { files: 1 }))[Symbol.dispose]();
  const before = openFiles();
  let [visits, most, files] = [0, 0, 0];
  const end = await walk(root, (_, { type }) => {
    if (++visits % 1000 === 0) most = Math.max(most, openFiles() - before);
    if (type === "file") files++;
  });
  expect([end, visits, files]).toEqual(["complete", 2 * levels, levels]);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(LEVELS_HELD + 2);
  expect(openFiles()).toBe(before);
}, 120_000);

test("continues wide directories at their position, far above", async () => {
  const names = Array.from({ length: 3000 }, (_, n) => `entry-${n}`);
  for (const name of names) writeFileSync(inATree(name), "");
  const deep = Array.from({ length: LEVELS_HELD + 10 }, () => "d");
  for (const name of ["x", "y", "z"]) {
    mkdirSync(inATree(name, ...deep), { recursive: true });
    for (const below of names) writeFileSync(inATree(name, "d", below), "");
  }
  const seen = new Map<string, number>();
  expect(await walk(root, (_, { name }) => void seen.set(name, (seen.get(name) ?? 0) + 1))).toBe("complete");
  expect(seen.size).toBe(names.length + 4);
  // Each in the top directory, and in three below it.
  expect(new Set(names.map((name) => seen.get(name)))).toEqual(new Set([4]));
  expect(seen.get("d")).toBe(3 * deep.length);
});

test("reports a moved ancestor directory, and does not touch its replacement", async () => {
  const levels = Array.from({ length: LEVELS_HELD + 10 }, (_, n) => `d${n}`);
  mkdirSync(inATree(...levels), { recursive: true });
  mkdirSync(inATree("elsewhere"));
  const before = openFiles();
  const last = levels.at(-1);
  const moving = walk(root, (_, { name }) => {
    // The directory is let go of by now.
    if (name === last) renameSync(inATree("d0", "d1", "d2"), inATree("elsewhere", "d2"));
  });
  expect(await moving).toBe("moved");
  expect(openFiles()).toBe(before);
  expect(await walk(root, () => {})).toBe("complete");
});

test("continues if a directory is deleted during the walk", async () => {
  for (const name of ["a", "b", "c"]) mkdirSync(inATree(name, "x"), { recursive: true });
  const seen: string[] = [];
  await walk(root, (_, { name }) => {
    seen.push(name);
    rmSync(inATree(name), { recursive: true, force: true });
  });
  expect(seen.sort()).toEqual(["a", "b", "c"]);
});

test("ends after a number of entries, and when its turn is refused, with no descriptor open", async () => {
  for (let n = 0; n < 5000; n++) writeFileSync(inATree(`f${n}`), "");
  const before = openFiles();
  let visits = 0;
  expect(await walk(root, () => void visits++, { most: 100 })).toBe("cut");
  expect(visits).toBe(100);
  const next = () => Promise.reject(new Error("no more"));
  const slow = () => new Promise<void>((resolve) => setTimeout(resolve, 2));
  await expect(walk(root, slow, { pieces: { next, turn: next } })).rejects.toThrow("no more");
  expect(openFiles()).toBe(before);
});

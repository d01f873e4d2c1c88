/** Files that a check leaves out: two thirds of the list, chosen by the seed, and each of them is a file. */
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { leftOut, SAMPLED } from "../../check/sample.ts";
import { Chance } from "../../harness/random.ts";

test("each file of the list exists", () => {
  expect(SAMPLED.filter((file) => !existsSync(file))).toEqual([]);
});

test("a third is run, the same by the same seed, and every file by some seed", () => {
  const runs = Array.from({ length: 40 }, (_, seed) => leftOut(new Chance(seed)));
  for (const files of runs) expect(SAMPLED.length - files.length).toBe(Math.ceil(SAMPLED.length / 3));
  expect(leftOut(new Chance(7))).toEqual(leftOut(new Chance(7)));
  const run = new Set(runs.flatMap((files) => SAMPLED.filter((file) => !files.includes(file))));
  expect(run.size).toBe(SAMPLED.length);
});

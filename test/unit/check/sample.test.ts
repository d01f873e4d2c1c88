/**
 * Files that a check leaves out: two thirds of the lists, chosen by the seed, and on a slow host more, so that the ring finishes in its
 * time.
 */
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { beyond, leftOut, SAMPLED, slownessOf } from "../../check/sample.ts";
import { Chance } from "../../harness/random.ts";

describe.each(Object.entries(SAMPLED))("the list of the %s ring", (ring, files) => {
  test("has files of the ring", () => {
    expect(files.filter((file) => !file.startsWith(`test/${ring}/`) || !existsSync(file))).toEqual([]);
  });

  test("a third runs, the same for the same seed, and every file for some seed", () => {
    const runs = Array.from({ length: 40 }, (_, seed) => leftOut(new Chance(seed), files));
    for (const left of runs) expect(files.length - left.length).toBe(Math.ceil(files.length / 3));
    expect(leftOut(new Chance(7), files)).toEqual(leftOut(new Chance(7), files));
    const run = new Set(runs.flatMap((left) => files.filter((file) => !left.includes(file))));
    expect(run.size).toBe(files.length);
  });
});

describe("files beyond a ring's time", () => {
  const committed = { a: 100, b: 60, c: 40 };
  const files = ["a", "b", "c", "short"];

  test("are absent if all files finish within it", () => {
    expect(beyond(new Chance(1), files, 102, 1, committed)).toEqual([]);
  });

  test("are left out in such a number that the others finish within it", () => {
    for (let seed = 0; seed < 20; seed++) {
      const left = beyond(new Chance(seed), files, 102, 2, committed);
      const run = files.filter((file) => !left.includes(file));
      expect(left.length).toBeGreaterThan(0);
      expect(run.reduce((sum, file) => sum + (committed[file as "a"] ?? 3), 0)).toBeLessThanOrEqual(102);
    }
    expect(beyond(new Chance(1), files, 0, 1, committed).toSorted()).toEqual(files);
  });

  test("follow from the durations of other files", () => {
    const measured = (file: string, seconds: number) => ({ file, ring: "api", startedAt: 0, seconds });
    expect(slownessOf([measured("a", 250), measured("b", 150), measured("new", 900)], committed)).toBe(2.5);
    expect(slownessOf([], committed)).toBe(1);
  });
});

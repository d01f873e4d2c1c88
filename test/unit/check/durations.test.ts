/** Durations of a run: the printed totals, and the committed file. */
import { expect, test } from "vitest";
import { asCommitted } from "../../check/durations.ts";
import { longest, totals } from "../../check/times.ts";

const FILES = [
  { file: "test/unit/a.test.ts", ring: "unit", startedAt: 1_000, seconds: 2.04 },
  { file: "test/api/b.test.ts", ring: "api", startedAt: 2_000, seconds: 30.4 },
  { file: "test/unit/c.test.ts", ring: "unit", startedAt: 4_000, seconds: 4 },
];

test("a ring is reported with its total, its files, its start and its end", () => {
  expect(totals(FILES)).toEqual([
    "api          30.4 s in 1 files, from 1.0 s to 31.4 s",
    "unit          6.0 s in 2 files, from 0.0 s to 7.0 s",
  ]);
});

test("the longest files come first, up to the requested number", () => {
  expect(longest(FILES, 2)).toEqual(["    30.4 s  test/api/b.test.ts", "     4.0 s  test/unit/c.test.ts"]);
});

test("the committed durations are whole seconds, the longest first, without the short ones", () => {
  expect(Object.entries(JSON.parse(asCommitted(FILES)))).toEqual([
    ["test/api/b.test.ts", 30],
    ["test/unit/c.test.ts", 4],
  ]);
});

test("files that did not run keep their durations", () => {
  const before = { "test/vm/d.test.ts": 60, "test/api/b.test.ts": 50 };
  expect(Object.entries(JSON.parse(asCommitted(FILES, before)))).toEqual([
    ["test/vm/d.test.ts", 60],
    ["test/api/b.test.ts", 30],
    ["test/unit/c.test.ts", 4],
  ]);
});

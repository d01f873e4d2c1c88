/** A benchmark's report: measurements compared with their yardsticks, and the limits that are missed. */
import { expect, test } from "vitest";
import { type Limit, Report } from "../../bench/report.ts";

function reportOf(limit: Limit): Report {
  const report = new Report("x");
  report.add("call", "ms", [1, 2, 30], "plain", limit);
  report.add("plain", "ms", [4]);
  return report;
}

test("a limit is met by a value at the bound itself, and is compared with its own percentile", () => {
  for (const limit of [
    { of: "p50", most: 2 },
    { of: "p50", least: 2 },
    { of: "p99", most: 30 },
    { of: "ratio", most: 0.5 },
  ] satisfies Limit[]) {
    expect(reportOf(limit).missed()).toEqual([]);
  }
});

test("a missed limit is reported with the measured figure and the bound", () => {
  expect(reportOf({ of: "p99", most: 29 }).missed()).toEqual([expect.stringMatching(/^call: p99 .* 30 ms.* 29$/)]);
  expect(reportOf({ of: "p50", least: 3 }).missed()).toEqual([expect.stringMatching(/^call: p50 .* 2 ms.* 3$/)]);
  expect(reportOf({ of: "ratio", most: 1 / 8 }).missed()).toEqual([
    expect.stringMatching(/^call: ratio .* 0\.5 .* 0\.125$/),
  ]);
});

test("a ratio requires a yardstick", () => {
  const report = new Report("x");
  report.add("call", "ms", [1], undefined, { of: "ratio", most: 1 });
  expect(() => report.missed()).toThrow(/\bratio\b/);
});

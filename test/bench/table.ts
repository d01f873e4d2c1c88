/** Text table of measures: one row each, figures aligned. */
import type { Measure } from "./report.ts";

const HEAD = ["measure", "unit", "count", "p50", "p95", "p99", "min", "max", "p50 / yardstick"];
/** Columns of words; the others are figures. */
const LEFT = new Set([0, 1, HEAD.length - 1]);

export function tableOf(measures: Record<string, Measure>): string {
  const rows = Object.entries(measures).map(([name, { unit, count, p50, p95, p99, min, max, ratio, yardstick }]) => [
    name,
    unit,
    String(count),
    // One sample has no distribution.
    ...[p50, p95, p99, min, max].map((value, column) => (count > 1 || column === 0 ? figure(value) : "")),
    ratio === undefined ? "" : `${figure(ratio)} × ${yardstick}`,
  ]);
  const widths = HEAD.map((_, column) => Math.max(...[HEAD, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => (LEFT.has(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ")
      .trimEnd();
  return [HEAD, widths.map((width) => "─".repeat(width)), ...rows].map(line).join("\n");
}

/** Three digits that matter, without exponents. */
function figure(value: number): string {
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3);
}

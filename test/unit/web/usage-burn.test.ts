/** Consumption of credits: the balance, its rate, and the time at which it runs out. */
import { expect, test } from "vitest";
import { ahead, type Credits, endInWords, endsAt, leftAt, paceOf } from "../../../daemon/web/usage/burn.ts";
import type { LedgerEntry } from "../../../shared/api/people/credits.ts";

const NOW = "2026-11-24T12:00:00.000Z";
const entry = (day: number, amount: number, kind: LedgerEntry["kind"] = "spend"): LedgerEntry => ({
  entry_id: `${kind} ${day}`,
  at: `2026-11-${String(day).padStart(2, "0")}T08:00:00.000Z`,
  kind,
  amount,
  reason: "",
});
/** Ten a day for the last seven, half of today's; granted once. */
const WEEK = [18, 19, 20, 21, 22, 23].map((day) => entry(day, -10));
const CREDITS: Credits = {
  granted: 200,
  used: 65,
  entries: [entry(24, -5), ...WEEK, entry(20, 100, "grant")],
  isAll: true,
};

test("the balance at a day's end follows from the later entries", () => {
  const left = leftAt(CREDITS, ["2026-11-17", "2026-11-19", "2026-11-20", "2026-11-23", "2026-11-24"], NOW);
  expect(left).toEqual([100, 80, 170, 140, 135]);
});

test("spending in no entry yet counts for today", () => {
  const known = { ...CREDITS, used: 75 };
  expect(leftAt(known, ["2026-11-23", "2026-11-24"], NOW)).toEqual([140, 125]);
  expect(paceOf(known, NOW)).toBeCloseTo(75 / 6.5);
  // If older entries are unknown, so is the spending that no entry contains.
  expect(paceOf({ ...known, isAll: false }, NOW)).toBeCloseTo(10);
});

test("the rate is that of the last seven days, without earlier spending or grants", () => {
  expect(paceOf(CREDITS, NOW)).toBeCloseTo(10);
  expect(paceOf({ ...CREDITS, used: 1065, entries: [...CREDITS.entries, entry(17, -1000)] }, NOW)).toBeCloseTo(10);
});

test("the text has the date on which they run out, or that they do not", () => {
  expect(endInWords(CREDITS, NOW)).toMatch(/ 7 days, 10 credits .* 8 Dec.* 13 days/);
  expect(endInWords({ ...CREDITS, granted: 68 }, NOW)).toContain(" 24 Nov");
  expect(endInWords({ ...CREDITS, granted: 565 }, NOW)).toMatch(/ 13 Jan 2027.* 50 days/);
  expect(endInWords({ ...CREDITS, granted: 65 }, NOW)).toContain("used up");
  expect(endInWords({ ...CREDITS, granted: 1e6 }, NOW)).toContain("for more than ten years");
  expect(endInWords({ ...CREDITS, granted: null }, NOW)).toContain("no limit");
  expect(endInWords({ granted: 10, used: 0, entries: [], isAll: true }, NOW)).toContain("do not run out");
});

test("the forecast line starts at the current balance, and ends at zero", () => {
  const days = ["2026-11-23", "2026-11-24", "2026-11-25", "2026-12-30"];
  const line = ahead(135, 10, NOW, days);
  expect(line.slice(0, 2)).toEqual([null, 135]);
  expect(line[2]).toBeCloseTo(120, 2);
  expect(line[3]).toBe(0);
  expect(endsAt(135, 0, NOW)).toBeNull();
});

import { describe, expect, test } from "vitest";
import { behindMs, latenessOf } from "../../../daemon/web/data/freshness.ts";

describe("how far behind a page is", () => {
  test.each([
    ["open, with recent data", { isOpen: true, silentMs: 0, lateMs: 0 }, 0],
    [
      "open, and nothing has happened for as long as between two pings",
      { isOpen: true, silentMs: 15_500, lateMs: 0 },
      0,
    ],
    ["open, and a ping is overdue", { isOpen: true, silentMs: 18_000, lateMs: 0 }, 18_000],
    ["open, and data arrives a little late", { isOpen: true, silentMs: 10, lateMs: 2999 }, 0],
    ["open, and data arrives late", { isOpen: true, silentMs: 10, lateMs: 4200 }, 4200],
    ["cut off a moment ago", { isOpen: false, silentMs: 2900, lateMs: 0 }, 0],
    ["cut off", { isOpen: false, silentMs: 3000, lateMs: 0 }, 3000],
  ])("%s", (_name, { isOpen, silentMs, lateMs }, expected) => {
    const now = 1_000_000;
    expect(behindMs({ isOpen, heardAt: now - silentMs, lateMs }, now)).toBe(expected);
  });
});

describe("the age of a record on arrival", () => {
  const at = "2026-01-31T12:00:00.000Z";
  const record = { at, duration_ms: null, status: null, details: {} };
  const then = (ms: number) => Date.parse(at) + ms;

  test("counts from its end: the time of a call's record is the call's start", () => {
    expect(latenessOf(record, then(4000), 0)).toBe(4000);
    expect(latenessOf({ ...record, status: 200, duration_ms: 3500 }, then(4000), 0)).toBe(500);
    expect(latenessOf({ ...record, duration_ms: 3500 }, then(4000), 0)).toBe(4000);
  });

  test("uses the service's clock, for any error of the browser's", () => {
    expect(latenessOf(record, then(3_600_000), 3_600_000)).toBe(0);
    expect(latenessOf(record, then(-60_000), -64_000)).toBe(4000);
    expect(latenessOf(record, then(-1), 0)).toBe(0);
  });

  test("is unknown for a record that sums up several", () => {
    expect(latenessOf({ ...record, details: { count: 3, first_at: at, last: {} } }, then(60_000), 0)).toBeNull();
  });
});

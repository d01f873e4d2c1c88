/** The numbers of the usage page: units, days, months, caps. */
import { expect, test } from "vitest";
import { capsOf } from "../../../daemon/web/usage/caps.ts";
import {
  daily,
  daysOf,
  inWords,
  isMonth,
  isNothing,
  MEASURES,
  monthBy,
  numberText,
} from "../../../daemon/web/usage/numbers.ts";
import type { UsageTotals } from "../../../shared/api/usage.ts";

const ZERO: UsageTotals = {
  sandbox_seconds: 0,
  vcpu_seconds: 0,
  memory_mib_seconds: 0,
  exec_count: 0,
  messages: 0,
  egress_bytes: 0,
  drive_byte_hours: 0,
  build_seconds: 0,
};
const PERIOD = { start_at: "2026-11-01T00:00:00.000Z", end_at: "2026-12-01T00:00:00.000Z" };

test("each value has its unit", () => {
  const totals: UsageTotals = {
    sandbox_seconds: 5400,
    vcpu_seconds: 7200,
    memory_mib_seconds: 2048 * 3600,
    exec_count: 3,
    messages: 4,
    egress_bytes: 512 * 1024 ** 2,
    drive_byte_hours: 3 * 1024 ** 3,
    build_seconds: 900,
  };
  const values = MEASURES.map(({ key, of }) => [key, of(totals)]);
  expect(Object.fromEntries(values)).toEqual({
    sandbox: 1.5,
    vcpu: 2,
    memory: 2,
    egress: 0.5,
    drive: 3,
    builds: 0.25,
    commands: 3,
    messages: 4,
  });
  expect([isNothing(ZERO), isNothing({ ...ZERO, messages: 1 })]).toEqual([true, false]);
});

test.each([
  [0, "0"],
  [0.0004, "< 0.001"],
  [0.0421, "0.042"],
  [1.234, "1.23"],
  [12.345, "12.3"],
  [1234.5, "1,235"],
])("%d is %s", (value, text) => expect(numberText(value)).toBe(text));

test("the days are those of the month in UTC up to now", () => {
  expect(daysOf(PERIOD, "2026-11-03T00:00:00.000Z")).toEqual(["2026-11-01", "2026-11-02", "2026-11-03"]);
  expect(daysOf(PERIOD, "2027-02-01T00:00:00.000Z")).toHaveLength(30);
  expect(daysOf(PERIOD, "2026-10-31T23:59:59.999Z")).toEqual([]);
});

test("a day without data has zero, and the text names the highest day", () => {
  const days = ["2026-11-01", "2026-11-02", "2026-11-03"];
  const groups = [{ id: "2026-11-02", name: null, totals: { ...ZERO, messages: 7 } }];
  const messages = MEASURES.find(({ key }) => key === "messages");
  if (!messages) throw new Error("no messages");
  const values = daily(days, groups, messages);
  expect(values).toEqual([0, 7, 0]);
  expect(inWords(days, values, "messages")).toMatch(/^7 messages, .* 2 Nov: 7$/);
  expect(inWords(days, [0, 0, 0], "messages")).toBe("No messages");
});

test("months continue over the year's end", () => {
  expect([monthBy("2026-01", -1), monthBy("2026-12", 1)]).toEqual(["2025-12", "2027-01"]);
  expect(["2026-11", "2026-13", "11", "", null].map(isMonth)).toEqual([true, false, false, false, false]);
});

test("caps are shown with their usage, also for a cap of zero", () => {
  const caps = capsOf({
    rooms: { active: 6, soft_cap: 5, hard_cap: 10 },
    sandboxes: { active: 0, soft_cap: 0, hard_cap: 0 },
    memory_mib: { allocated: 512, soft_cap: 1024, hard_cap: 2048 },
    disk_gib: { allocated: 4, soft_cap: 10, hard_cap: 2048 },
    template_mib: { used: 1536, soft_cap: 1024, hard_cap: 2048 },
    drive: { used_bytes: 0, soft_cap_bytes: 1024, hard_cap_bytes: 4096 },
    guest_cids: { in_use: 9, total: 900 },
  });
  expect(caps.map(({ used, most, share, isOverSoft }) => [used, most, share, isOverSoft])).toEqual([
    ["6", "10", 0.6, true],
    ["0", "0", 0, false],
    ["512 MiB", "2 GiB", 0.25, false],
    ["4 GiB", "2 TiB", 4 / 2048, false],
    ["1.5 GiB", "2 GiB", 0.75, true],
    ["0 B", "4 KiB", 0, false],
    ["9", "900", 0.01, false],
  ]);
});

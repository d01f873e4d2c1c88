/** Read-only audit events by name, and a check that each operation that reads or changes something is named accordingly. */
import { expect, test } from "vitest";
import type { Operation } from "../../../../../shared/api/contract.ts";
import { operations } from "../../../../../shared/api/operations.ts";
import { isReading, isReadingEvent } from "../../../../../shared/audit-reads.ts";

/** They give or take more than a look. */
const MORE_THAN_READING = ["room.backed_up", "user.exported", "exec.terminal_attached"];

test("the event of each operation is read-only exactly if the operation is", () => {
  const audited = (Object.values(operations) as Operation[]).filter(({ audit }) => audit !== null);
  const only = audited.filter(({ method }) => method === "GET").map(({ audit }) => String(audit));
  const does = audited.filter(({ method }) => method !== "GET").map(({ audit }) => String(audit));
  expect(only.filter((event) => !isReadingEvent(event) && !MORE_THAN_READING.includes(event))).toEqual([]);
  expect(does.filter(isReadingEvent)).toEqual([]);
});

test("refused and failed reads are no plain reads, except requests of web pages", () => {
  const record = { event: "room.read", outcome: "success", source: "rest" };
  expect(isReading(record)).toBe(true);
  expect(isReading({ ...record, outcome: "denied" })).toBe(false);
  expect(isReading({ ...record, outcome: "error", source: "web" })).toBe(true);
  expect(isReading({ ...record, event: "key.created", source: "web" })).toBe(false);
  expect(isReading({ ...record, event: "room.spread" })).toBe(false);
});

/** The sentence of a summary: its numbers and its words agree. */
import { expect, test } from "vitest";
import { summaryText } from "../../../../daemon/domain/audit/reading/summarize.ts";

const at = "2026-11-29T15:38:00.000Z";
const summary = (success: number, denied: number, error: number) => {
  const total = success + denied + error;
  const outcomes = { success, denied, error };
  return summaryText("r", { total, from_at: at, to_at: at, outcomes, events: [], agents: [], errors: [] } as never);
};

test.each([
  [[47, 0, 1], "48 records from 2026-11-29 15:38 to 2026-11-29 15:38 UTC; 47 succeeded, 0 were denied, 1 failed."],
  [[0, 1, 0], "1 record from 2026-11-29 15:38 to 2026-11-29 15:38 UTC; 0 succeeded, 1 was denied, 0 failed."],
] as const)("%j", ([success, denied, error], sentence) => {
  expect(summary(success, denied, error)).toContain(sentence);
});

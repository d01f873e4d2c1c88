/** Records that arrive while others are displayed: each once, in order, and none moves the text that a user reads. */
import { expect, test } from "vitest";
import {
  MAX_RECORDS,
  NONE,
  type TailRecords,
  withHeard,
  withMissed,
  withOlder,
} from "../../../daemon/web/audit/tail.ts";
import type { AuditRecord } from "../../../shared/api/audit.ts";

const record = (seq: number) => ({ seq }) as AuditRecord;
/** From the newest on. */
const down = (from: number, count: number) => Array.from({ length: count }, (_, n) => record(from - n));
const seqs = ({ shown, fresh }: TailRecords) => [shown.map(({ seq }) => seq), fresh.map(({ seq }) => seq)];
const kept = (from: number, count: number): TailRecords => ({ ...NONE, shown: down(from, count) });

test("at the top a received record is shown immediately, and once", () => {
  const after = withHeard(kept(3, 3), [record(3), record(4), record(5)], true);
  expect(seqs(after)).toEqual([[5, 4, 3, 2, 1], []]);
  expect(seqs(withHeard(after, [record(4), record(5)], true))).toEqual([[5, 4, 3, 2, 1], []]);
});

test("elsewhere it waits, and is shown when the user is at the top again", () => {
  const first = withHeard(kept(3, 3), [record(4)], false);
  const second = withHeard(first, [record(4), record(5)], false);
  expect(seqs(second)).toEqual([
    [3, 2, 1],
    [5, 4],
  ]);
  expect(withHeard(second, [], false)).toBe(second);
  expect(seqs(withHeard(second, [], true))).toEqual([[5, 4, 3, 2, 1], []]);
});

test("older pages follow, without records already shown", () => {
  expect(seqs(withOlder(kept(9, 3), down(8, 4)))).toEqual([[9, 8, 7, 6, 5], []]);
  expect(seqs(withOlder(NONE, down(2, 2)))).toEqual([[2, 1], []]);
});

test("missed records are joined if they are contiguous, and otherwise reloaded", () => {
  expect(withMissed(kept(3, 3), down(6, 4), false)).toEqual({ ...kept(3, 3), fresh: down(6, 3) });
  expect(withMissed(kept(3, 3), down(600, 500), false)).toBeNull();
});

test("records above the limit are dropped from their end, and that is shown", () => {
  const full = withHeard(kept(MAX_RECORDS, MAX_RECORDS), [record(MAX_RECORDS + 1)], true);
  expect([full.shown.length, full.isCut, full.shown[0]?.seq]).toEqual([MAX_RECORDS, true, MAX_RECORDS + 1]);
  expect(withOlder(kept(10, 3), []).isCut).toBe(false);
});

/** The newest records of a timeline, shared by its followers: each reader gets every record once and in order, whatever their turns. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { AT_ONCE, SharedTails, type Source } from "../../../../../daemon/domain/audit/reading/shared-tail.ts";
import type { AuditRow } from "../../../../../daemon/domain/audit/table.ts";

/** A chain of which only some records belong to the timeline. */
function chainOf() {
  const kept: AuditRow[] = [];
  let head = 0;
  let reads = 0;
  let closedUpTo = 0;
  const source: Source = {
    head: () => head,
    closedUpTo: () => closedUpTo,
    read: ({ after, last = Number.POSITIVE_INFINITY, limit }) => {
      reads++;
      expect(after).toBeGreaterThanOrEqual(closedUpTo);
      return kept.filter(({ seq }) => seq > after && seq <= last).slice(0, limit);
    },
    eventOf: (row) => ({ id: row.seq, data: { seq: row.seq, text: "x".repeat(row.duration_ms ?? 0) } }),
  };
  const grow = (count: number, isOfTimeline: boolean, size = 0) => {
    for (let n = 0; n < count; n++) {
      head++;
      if (!isOfTimeline) continue;
      kept.push({ seq: head, event: "message.sent", outcome: "success", duration_ms: size } as AuditRow);
    }
  };
  const close = () => {
    closedUpTo = head;
  };
  return { source, grow, close, all: () => kept.map(({ seq }) => seq), reads: () => reads };
}

const step = fc.oneof(
  fc.record({ grows: fc.nat(400), isOfTimeline: fc.boolean(), size: fc.constantFrom(0, 10, 200_000) }),
  fc.record({ joins: fc.nat(2000) }),
  fc.record({ reads: fc.nat(5), times: fc.nat(6) }),
);

test("every reader gets each record once, in order, for any start and any rate of reading", () => {
  fc.assert(
    fc.property(fc.nat(500), fc.array(step, { maxLength: 30 }), (before, steps) => {
      const { source, grow, all } = chainOf();
      grow(before, true);
      grow(before, false);
      const tails = new SharedTails();
      const readers: { from: number; at: number; seen: number[] }[] = [];
      const over = new AbortController();
      const tail = tails.join("room", source, over.signal);
      const read = (reader: (typeof readers)[number] | undefined) => {
        const batch = reader ? tail.after(reader.at) : null;
        if (!reader || !batch) return false;
        expect(batch.events.length).toBeLessThanOrEqual(AT_ONCE);
        reader.seen.push(...batch.events.map(({ id }) => Number(id)));
        reader.at = batch.last;
        return true;
      };
      for (const each of steps) {
        if ("grows" in each) grow(Math.min(each.grows, each.size > 1000 ? 5 : 400), each.isOfTimeline, each.size);
        else if ("joins" in each) readers.push({ from: each.joins, at: each.joins, seen: [] });
        else for (let n = 0; n < each.times; n++) read(readers[each.reads]);
      }
      for (const reader of readers) {
        while (read(reader));
        expect(reader.seen).toEqual(all().filter((seq) => seq > reader.from));
      }
    }),
  );
});

test("many up-to-date readers cost one read", () => {
  const { source, grow, reads } = chainOf();
  const tail = new SharedTails().join("room", source, new AbortController().signal);
  grow(20, true);
  const batch = tail.after(0);
  expect(batch?.events).toHaveLength(20);
  // The very same list, so that it is written once.
  for (let reader = 1; reader < 20; reader++) expect(tail.after(0)).toBe(batch);
  expect(reads()).toBe(1);
  expect(tail.after(20)).toBe(null);
});

test("records are retained once, for any reader's position", () => {
  const { source, grow } = chainOf();
  const tail = new SharedTails().join("room", source, new AbortController().signal);
  grow(1, true);
  grow(1000, false);
  grow(1, true);
  expect(tail.after(0)?.events).toHaveLength(2);
  const batch = tail.after(1);
  expect(batch?.events.map(({ id }) => id)).toEqual([1002]);
  for (let seq = 2; seq <= 1001; seq++) expect(tail.after(seq)).toBe(batch);
});

test("reads no closed day, however few records were added since its last event", () => {
  const { source, grow, close } = chainOf();
  grow(10, true);
  const tail = new SharedTails().join("room", source, new AbortController().signal);
  grow(5, true);
  expect(tail.after(10)?.last).toBe(15);
  grow(100, false);
  close();
  expect(tail.after(115)).toBe(null);
  grow(1, true);
  expect(tail.after(115)?.events.map(({ id }) => id)).toEqual([116]);
});

test("is released with its last follower", () => {
  const tails = new SharedTails();
  const { source } = chainOf();
  const [one, other] = [new AbortController(), new AbortController()];
  const tail = tails.join("room", source, one.signal);
  expect(tails.join("room", source, other.signal)).toBe(tail);
  one.abort();
  other.abort();
  expect(tails.join("room", source, one.signal)).not.toBe(tail);
});

/** Cursors: a list accepts its own, and nothing else. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { makeCursor, readCursor } from "../../../../daemon/core/call/cursor.ts";

test("a cursor decodes to its position, for its own list only", () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ unit: "grapheme" }), (kind, position) => {
      expect(readCursor(kind, makeCursor(kind, position))).toBe(position.toWellFormed());
    }),
  );
  expect(readCursor("list", undefined)).toBeNull();
});

test("any other text is rejected", () => {
  const cursor = makeCursor("rooms org_1", "rom_01");
  expect(() => readCursor("rooms org_2", cursor)).toThrow(/invalid_cursor/);
  fc.assert(
    fc.property(fc.nat({ max: cursor.length }), fc.string({ maxLength: 3 }), fc.nat({ max: 2 }), (at, put, taken) => {
      const edited = cursor.slice(0, at) + put + cursor.slice(at + taken);
      fc.pre(edited !== cursor);
      expect(() => readCursor("rooms org_1", edited)).toThrow(/invalid_cursor/);
    }),
    { numRuns: 2000 },
  );
});

/** A terminal's history: whatever is appended in whatever pieces, each offset has its byte until it is forgotten. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { History } from "../../shared/agent-protocol/history.ts";

test("it is the tail of all appended bytes", () => {
  const most = 100_000;
  const piece = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 40_000 }), fc.constant(150_000));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (sizes) => {
      const history = new History(most);
      let all = Buffer.alloc(0);
      for (const [index, size] of sizes.entries()) {
        const bytes = Buffer.alloc(size, index + 1);
        history.append(bytes);
        all = Buffer.concat([all, bytes]);
        expect(history.end).toBe(all.byteLength);
        expect(history.oldest).toBe(Math.max(0, all.byteLength - most));
      }
      const shown: Uint8Array[] = [];
      for (let at = history.oldest; at < history.end; ) {
        const read = history.read(at, 7_919);
        shown.push(read);
        at += read.byteLength;
      }
      expect(Buffer.concat(shown).equals(all.subarray(history.oldest))).toBe(true);
    }),
    { numRuns: 200 },
  );
});

test("discarded and future positions cannot be read", () => {
  const history = new History(1024);
  history.append(new Uint8Array(2048));
  expect(history.read(2048, 10).byteLength).toBe(0);
  expect(() => history.read(1023, 1)).toThrow(RangeError);
  expect(() => history.read(2049, 1)).toThrow(RangeError);
});

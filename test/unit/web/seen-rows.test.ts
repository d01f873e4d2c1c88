/** Which rows of a long list are in the page. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { seenRows } from "../../../daemon/web/components/seen-rows.ts";

const NOTHING = { from: 0, to: 0 };

test("all visible rows are present, for any earlier state, and not many more", () => {
  const whole = (max: number) => fc.integer({ min: 0, max });
  fc.assert(
    fc.property(
      whole(60_000),
      whole(2_000_000),
      whole(2000),
      whole(60_000),
      whole(60),
      (count, topPx, heightPx, from, size) => {
        const rowPx = 32;
        const seen = seenRows({ topPx, heightPx, rowPx, count }, { from, to: from + size });
        const first = Math.min(Math.floor(topPx / rowPx), count);
        const last = Math.min(Math.ceil((topPx + heightPx) / rowPx), count);
        expect(seen.from).toBeLessThanOrEqual(first);
        expect(seen.to).toBeGreaterThanOrEqual(last);
        expect(seen.to).toBeLessThanOrEqual(count);
        expect(seen.to - seen.from).toBeLessThan(heightPx / rowPx + 24);
      },
    ),
  );
});

test("a jump renders only visible rows; the surrounding ones come with the next update", () => {
  const at = { topPx: 32_000, heightPx: 640, rowPx: 32, count: 10_000 };
  const leapt = seenRows(at, NOTHING);
  const then = seenRows(at, leapt);
  expect(then.from).toBeLessThan(leapt.from);
  expect(then.to).toBeGreaterThan(leapt.to);
  expect(seenRows(at, then)).toEqual(then);
  expect(seenRows({ ...at, topPx: at.topPx + 3 }, then)).toEqual(then);
});

/** Layout of a timeline: no item is lost, none overlaps another, and the cost is bounded by the window's width. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { densityOf, firstReaching, type Lying, layLane, ticksOf } from "../../../daemon/web/room/timeline/layout.ts";
import { foldedScale, LEAST_GAP_MS, STRAIGHT } from "../../../daemon/web/room/timeline/scale.ts";

const NOW = 10_000_000;
const lying = fc
  .record({
    from: fc.integer({ min: 0, max: NOW }),
    lasts: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2_000_000 })),
    look: fc.constantFrom("command", "wait", "bad"),
  })
  .map(({ from, lasts, look }): Lying => ({ from, to: Math.min(NOW, from + lasts), look }));
const lane = fc
  .array(lying, { maxLength: 300 })
  .map((items) => items.sort((one, other) => one.from - other.from || one.to - other.to));

describe("a lane", () => {
  test("counts each item in the window once, and places no two spans of a row over each other", () => {
    fc.assert(
      fc.property(lane, fc.integer({ min: 100, max: 2000 }), (items, width) => {
        const placed = layLane(items, STRAIGHT, { from: 0, to: NOW, width });
        expect(placed.reduce((sum, { count }) => sum + count, 0)).toBe(items.length);
        for (const row of [0, 1]) {
          const own = placed.filter((each) => each.row === row && each.width > 0);
          for (const [n, each] of own.entries()) {
            const next = own[n + 1];
            if (next) expect(each.left + each.width).toBeLessThanOrEqual(next.left + 3.001);
          }
        }
      }),
    );
  });

  test("includes an item at the very end of the window, for any width", () => {
    for (let width = 100; width < 2000; width++) {
      const placed = layLane([{ from: NOW, to: NOW, look: "bad" }], STRAIGHT, { from: 0, to: NOW, width });
      expect([width, placed.length]).toEqual([width, 1]);
    }
  });

  test("has no more marks and tiny spans than can be distinguished, for any number", () => {
    const many = Array.from({ length: 40_000 }, (_, n): Lying => {
      const from = n * 250;
      return { from, to: n % 2 ? from : from + 100, look: n % 2 ? "mark" : "command" };
    });
    const placed = layLane(many, STRAIGHT, { from: 0, to: NOW, width: 1000 });
    expect(placed.length).toBeLessThan(500);
    expect(placed.reduce((sum, { count }) => sum + count, 0)).toBe(many.length);
  });

  test("omits items outside of the window", () => {
    const items = [
      { from: 0, to: 10, look: "a" },
      { from: 5000, to: 6000, look: "a" },
      { from: 9000, to: 9000, look: "a" },
    ];
    const placed = layLane(items, STRAIGHT, { from: 4000, to: 7000, width: 300 });
    expect(placed).toEqual([{ left: 100, width: 100, row: 0, item: items[1], count: 1 }]);
  });
});

describe("the axis, folded", () => {
  const times = fc
    .array(fc.tuple(fc.integer({ min: 0, max: NOW }), fc.integer({ min: 0, max: 100_000 })), {
      minLength: 1,
      maxLength: 50,
    })
    .map((all) =>
      all.map(([from, lasts]) => ({ from, to: Math.min(NOW, from + lasts) })).sort((a, b) => a.from - b.from),
    );

  test("preserves the order of moments, and is reversible", () => {
    fc.assert(
      fc.property(
        times,
        fc.array(fc.integer({ min: 0, max: NOW }), { minLength: 2, maxLength: 20 }),
        (busy, moments) => {
          const scale = foldedScale(busy, NOW);
          const sorted = moments.sort((one, other) => one - other);
          const places = sorted.map(scale.place);
          for (const [n, place] of places.entries()) {
            expect(scale.moment(place)).toBeCloseTo(sorted[n] as number, 3);
            if (n > 0) expect(place).toBeGreaterThanOrEqual(places[n - 1] as number);
          }
        },
      ),
    );
  });

  test("folds only gaps without activity", () => {
    fc.assert(
      fc.property(times, (busy) => {
        for (const { from, to } of foldedScale(busy, NOW).folds) {
          expect(to - from).toBeGreaterThan(LEAST_GAP_MS / 2);
          expect(busy.filter((each) => each.from < to && each.to > from)).toEqual([]);
        }
      }),
    );
  });
});

test("items that reach into a window are found by binary search", () => {
  fc.assert(
    fc.property(lane, fc.integer({ min: 0, max: NOW }), (items, moment) => {
      let end = Number.NEGATIVE_INFINITY;
      const reach = items.map(({ to }) => {
        end = Math.max(end, to);
        return end;
      });
      const first = firstReaching(reach, moment);
      expect(items.slice(0, first).every(({ to }) => to < moment)).toBe(true);
    }),
  );
});

test("the strip and the axis have at most the requested number of parts", () => {
  const items = [
    { from: 0, to: 1000, look: "a" },
    ...Array.from({ length: 9 }, () => ({ from: 5000, to: 5000, look: "a" })),
  ];
  const density = densityOf(items, STRAIGHT, 0, 10_000, 10);
  expect(density.map((each) => Math.round(each * 10))).toEqual([3, 3, 0, 0, 0, 10, 0, 0, 0, 0]);
  const ticks = ticksOf(STRAIGHT, { from: 0, to: 900_000, width: 900 }, 90);
  expect(ticks.map(({ moment }) => moment / 1000)).toEqual([0, 120, 240, 360, 480, 600, 720, 840]);
});

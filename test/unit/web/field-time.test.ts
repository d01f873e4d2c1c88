/** Moments in fields of date and time, which have no zone of their own. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fieldMoment, fieldText } from "../../../daemon/web/components/field-time.ts";

const MOMENT = Date.parse("2026-11-28T18:36:05.000Z");
const before = process.env.TZ;
beforeAll(() => {
  process.env.TZ = "Pacific/Auckland";
});
afterAll(() => {
  if (before === undefined) delete process.env.TZ;
  else process.env.TZ = before;
});

test("shown and typed times are in the chosen zone", () => {
  expect(fieldText(MOMENT, true)).toBe("2026-11-28T18:36:05");
  expect(fieldText(MOMENT, false)).toBe("2026-11-29T07:36:05");
  expect(fieldMoment("2026-11-28T18:36:05", true)).toBe(MOMENT);
  expect(fieldMoment("2026-11-29T07:36:05", false)).toBe(MOMENT);
  expect(
    ["", "nonsense", "2026-13-01T00:00"].flatMap((text) => [fieldMoment(text, true), fieldMoment(text, false)]),
  ).toEqual(Array.from({ length: 6 }, () => Number.NaN));
});

test("in UTC a moment round-trips, to the second", () => {
  const moment = fc.integer({ min: 0, max: 4_000_000_000 });
  fc.assert(fc.property(moment, (s) => fieldMoment(fieldText(s * 1000, true), true) === s * 1000));
});

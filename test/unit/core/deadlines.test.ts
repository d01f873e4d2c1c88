/** Moments at which something is due: near, past, moved, taken away, and further away than a timer reaches. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Deadlines } from "../../../daemon/core/deadlines.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse("2026-01-31T12:00:00Z") });
});
afterEach(() => {
  vi.useRealTimers();
});

function watched() {
  const due: { key: string; at: number }[] = [];
  return { due, deadlines: new Deadlines((key) => due.push({ key, at: Date.now() })) };
}
const moment = (ms: number) => new Date(Date.now() + ms).toISOString();

describe("a moment", () => {
  test("is due when it comes, once", () => {
    const { due, deadlines } = watched();
    const at = Date.now() + 1000;
    deadlines.set("a", moment(1000));
    vi.advanceTimersByTime(999);
    expect(due).toEqual([]);
    vi.advanceTimersByTime(5000);
    expect(due).toEqual([{ key: "a", at }]);
  });

  test("that has passed is due at once, but not before set returns", () => {
    const { due, deadlines } = watched();
    deadlines.set("a", moment(-DAY_MS));
    expect(due).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(due.map(({ key }) => key)).toEqual(["a"]);
  });

  test("may be moved and taken away", () => {
    const { due, deadlines } = watched();
    deadlines.set("moved", moment(1000));
    deadlines.set("gone", moment(1000));
    deadlines.set("moved", moment(3000));
    deadlines.set("gone", null);
    deadlines.set("never was", null);
    vi.advanceTimersByTime(2000);
    expect(due).toEqual([]);
    vi.advanceTimersByTime(2000);
    expect(due.map(({ key }) => key)).toEqual(["moved"]);
  });

  test.each([25, 30, 365, 3650])("%i days away is due on that day and not before", (days) => {
    const { due, deadlines } = watched();
    const at = Date.now() + days * DAY_MS;
    deadlines.set("far", moment(days * DAY_MS));
    vi.advanceTimersByTime(days * DAY_MS - 1);
    expect(due).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(due).toEqual([{ key: "far", at }]);
  });

  test("far away may still be moved after years of waiting", () => {
    const { due, deadlines } = watched();
    deadlines.set("far", moment(100 * DAY_MS));
    vi.advanceTimersByTime(60 * DAY_MS);
    deadlines.set("far", moment(1000));
    vi.advanceTimersByTime(1000);
    expect(due).toHaveLength(1);
    vi.advanceTimersByTime(100 * DAY_MS);
    expect(due).toHaveLength(1);
  });
});

describe.each([1, -1])("after a step of the wall clock by %i h", (hours) => {
  const step = () => vi.setSystemTime(Date.now() + hours * HOUR_MS);

  test("a duration is over when it was to be", () => {
    const { due, deadlines } = watched();
    deadlines.setIn("a", 2 * HOUR_MS);
    step();
    vi.advanceTimersByTime(2 * HOUR_MS - 1);
    expect(due).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(due).toHaveLength(1);
  });

  test("a moment is due by the wall clock, and never before it", () => {
    const { due, deadlines } = watched();
    const at = Date.now() + 3 * HOUR_MS;
    deadlines.set("a", moment(3 * HOUR_MS));
    step();
    vi.advanceTimersByTime(at - Date.now() - 1);
    expect(due).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(due).toEqual([{ key: "a", at }]);
  });
});

test("a moment that the wall clock is set beyond is due within an hour", () => {
  const { due, deadlines } = watched();
  deadlines.set("a", moment(2 * DAY_MS));
  vi.setSystemTime(Date.now() + 3 * DAY_MS);
  vi.advanceTimersByTime(HOUR_MS);
  expect(due).toHaveLength(1);
});

test("after clear nothing is due any more", () => {
  const { due, deadlines } = watched();
  for (const days of [1, 100]) deadlines.set(`in ${days}`, moment(days * DAY_MS));
  deadlines.clear();
  vi.advanceTimersByTime(200 * DAY_MS);
  expect(due).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test("what is due may set its own next moment", () => {
  let rounds = 0;
  const deadlines = new Deadlines((key) => {
    if (++rounds < 5) deadlines.set(key, moment(1000));
  });
  deadlines.set("again", moment(1000));
  vi.advanceTimersByTime(60_000);
  expect(rounds).toBe(5);
});

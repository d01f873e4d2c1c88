/** Moments at which something is due: near, past, moved, taken away, and further away than a timer reaches. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Deadlines } from "../../../../daemon/core/concurrency/deadlines.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

let clock: MovedClock;
beforeEach(() => {
  clock = new MovedClock();
});
afterEach(() => clock[Symbol.dispose]());

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
    clock.pass(999);
    expect(due).toEqual([]);
    clock.pass(5000);
    expect(due).toEqual([{ key: "a", at }]);
  });

  test("in the past is due immediately, but not before set returns", () => {
    const { due, deadlines } = watched();
    deadlines.set("a", moment(-DAY_MS));
    expect(due).toEqual([]);
    clock.pass(1);
    expect(due.map(({ key }) => key)).toEqual(["a"]);
  });

  test("can be moved and removed", () => {
    const { due, deadlines } = watched();
    deadlines.set("moved", moment(1000));
    deadlines.set("gone", moment(1000));
    deadlines.set("moved", moment(3000));
    deadlines.set("gone", null);
    deadlines.set("never was", null);
    clock.pass(2000);
    expect(due).toEqual([]);
    clock.pass(2000);
    expect(due.map(({ key }) => key)).toEqual(["moved"]);
  });

  test.each([25, 30, 365, 3650])("%i days away is due on that day and not before", (days) => {
    const { due, deadlines } = watched();
    const at = Date.now() + days * DAY_MS;
    deadlines.set("far", moment(days * DAY_MS));
    clock.pass(days * DAY_MS - 1);
    expect(due).toEqual([]);
    clock.pass(1);
    expect(due).toEqual([{ key: "far", at }]);
  });

  test("far away can still be moved after years of waiting", () => {
    const { due, deadlines } = watched();
    deadlines.set("far", moment(100 * DAY_MS));
    clock.pass(60 * DAY_MS);
    deadlines.set("far", moment(1000));
    clock.pass(1000);
    expect(due).toHaveLength(1);
    clock.pass(100 * DAY_MS);
    expect(due).toHaveLength(1);
  });
});

describe.each([1, -1])("after a step of the wall clock by %i h", (hours) => {
  const step = () => clock.step(hours * HOUR_MS);

  test("a duration ends on time", () => {
    const { due, deadlines } = watched();
    deadlines.setIn("a", 2 * HOUR_MS);
    step();
    clock.pass(2 * HOUR_MS - 1);
    expect(due).toEqual([]);
    clock.pass(1);
    expect(due).toHaveLength(1);
  });

  test("a moment is due by the wall clock, and never before it", () => {
    const { due, deadlines } = watched();
    const at = Date.now() + 3 * HOUR_MS;
    deadlines.set("a", moment(3 * HOUR_MS));
    step();
    clock.pass(at - Date.now() - 1);
    expect(due).toEqual([]);
    clock.pass(1);
    expect(due).toEqual([{ key: "a", at }]);
  });
});

test.each([HOUR_MS / 2, 2 * DAY_MS])("a moment that the wall clock jumps over is due within a minute", (ms) => {
  const { due, deadlines } = watched();
  deadlines.set("a", moment(ms));
  deadlines.set("later", moment(10 * DAY_MS));
  clock.step(3 * DAY_MS);
  clock.pass(MINUTE_MS + 1);
  expect(due.map(({ key }) => key)).toEqual(["a"]);
});

test("nothing is due after clear", () => {
  const { due, deadlines } = watched();
  for (const days of [1, 100]) deadlines.set(`in ${days}`, moment(days * DAY_MS));
  deadlines.clear();
  clock.pass(200 * DAY_MS);
  expect(due).toEqual([]);
  expect(clock.timers).toBe(0);
});

test("a due moment may set its own successor", () => {
  let rounds = 0;
  const deadlines = new Deadlines((key) => {
    if (++rounds < 5) deadlines.set(key, moment(1000));
  });
  deadlines.set("again", moment(1000));
  clock.pass(60_000);
  expect(rounds).toBe(5);
});

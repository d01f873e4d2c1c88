/** The daemon's clock under a test's: one call moves wall clock, monotonic clock and timers; a step of the wall clock moves that alone. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  agesOfThread,
  fineWallMs,
  monotonicMs,
  now,
  pause,
  sleep,
  startInterval,
  startTimer,
  stopTimer,
  timeoutSignal,
  wallMs,
} from "../../../daemon/core/clock.ts";
import { PartBoard } from "../../../daemon/core/threads/messages.ts";
import { MovedClock } from "../../harness/hosts/moved-clock.ts";

const HOUR_MS = 3_600_000;

let clock: MovedClock;
beforeEach(() => {
  clock = new MovedClock();
});
afterEach(() => clock[Symbol.dispose]());

test("a pause ends after its time, and early without an error if its signal aborts", async () => {
  const events: string[] = [];
  const stop = new AbortController();
  void pause(40).then(() => events.push("unstopped"));
  void pause(20, stop.signal).then(() => events.push("before"));
  void pause(60, stop.signal).then(() => events.push("stopped"));
  await clock.passAsync(30);
  expect(events).toEqual(["before"]);
  stop.abort();
  await pause(HOUR_MS, stop.signal);
  expect(events).toEqual(["before", "stopped"]);
  await clock.passAsync(10);
  expect(events).toEqual(["before", "stopped", "unstopped"]);
});

test("both clocks and all timers move together", async () => {
  const events: string[] = [];
  const began = monotonicMs();
  startTimer(() => events.push("timer"), 10);
  const interval = startInterval(() => events.push("interval"), 40);
  const stopped = startTimer(() => events.push("stopped"), 50);
  void sleep(60).then(() => events.push("sleep"));
  timeoutSignal(70).addEventListener("abort", () => events.push("signal"));
  stopTimer(stopped);
  await clock.passAsync(100);
  expect(events).toEqual(["timer", "interval", "sleep", "signal", "interval"]);
  stopTimer(interval);
  await clock.passAsync(HOUR_MS - 100);
  expect(events).toHaveLength(5);
  expect([monotonicMs() - began, now()]).toEqual([HOUR_MS, "2026-01-31T13:00:00.000Z"]);
  expect(clock.timers).toBe(0);
});

describe.each([1, -1])("a step of the wall clock by %i h", (hours) => {
  const step = () => clock.step(hours * HOUR_MS);

  test("neither fires nor delays timers", async () => {
    let fired = 0;
    for (const wait of [sleep(1000), new Promise((resolve) => startTimer(() => resolve(0), 1000))]) {
      void wait.then(() => fired++);
    }
    timeoutSignal(1000).addEventListener("abort", () => fired++);
    step();
    await clock.passAsync(999);
    expect(fired).toBe(0);
    await clock.passAsync(1);
    expect(fired).toBe(3);
  });

  test("moves only the wall clock, including the fine one", () => {
    const before = { wall: wallMs(), fine: fineWallMs(), monotonic: monotonicMs() };
    step();
    expect(wallMs() - before.wall).toBe(hours * HOUR_MS);
    expect(Math.abs(fineWallMs() - before.fine - hours * HOUR_MS)).toBeLessThan(1);
    expect(monotonicMs()).toBe(before.monotonic);
  });

  test("between the starts of two threads does not change the age of values passed between them", () => {
    const memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT);
    const board = new PartBoard(memory);
    // The thread's clock has another zero.
    new Float64Array(memory)[0] = monotonicMs() + hours * HOUR_MS;
    expect(board.ms).toBe(0);
    clock.pass(500);
    expect(board.ms).toBe(500);
  });
});

test("a sleep rejects with the reason of its signal and leaves no timer", async () => {
  const given = new AbortController();
  const reason = new Error("given up");
  const sleeping = sleep(1000, given.signal);
  given.abort(reason);
  await expect(sleeping).rejects.toBe(reason);
  await expect(sleep(1000, given.signal)).rejects.toBe(reason);
  expect(clock.timers).toBe(0);
});

test("a finished sleep leaves no listener on its signal", async () => {
  const { signal } = new AbortController();
  const remove = vi.spyOn(signal, "removeEventListener");
  const sleeping = sleep(10, signal);
  clock.pass(10);
  await sleeping;
  expect(remove).toHaveBeenCalledOnce();
});

test("the age of another thread's timestamp is never too large, and exact once one was read without delay", () => {
  const ageOf = agesOfThread();
  const apart = 12_345;
  const theirs = monotonicMs() - apart;
  clock.pass(40);
  expect(ageOf(theirs)).toBe(0);
  clock.pass(10);
  expect(ageOf(theirs)).toBe(10);
  expect(ageOf(monotonicMs() - apart)).toBe(0);
  expect(ageOf(theirs)).toBe(50);
});

/** A guest's own time: it does not pass while the guest is paused. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { afterGuestMs, PausableDeadlines } from "../../../../daemon/host/guest-link/pausable-deadlines.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function watched(ms: number) {
  const standstill = new PausableDeadlines();
  const due: number[] = [];
  const startedAt = performance.now();
  const giveUp = afterGuestMs(standstill, ms, () => due.push(performance.now() - startedAt));
  return { standstill, due, giveUp };
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("a deadline in the guest's time", () => {
  test("equals the host's if the guest is never paused", async () => {
    const { due } = watched(1000);
    await pass(999);
    expect(due).toEqual([]);
    await pass(5000);
    expect(due).toEqual([1000]);
  });

  test("is postponed by every pause, for any number of them", async () => {
    const { standstill, due } = watched(1000);
    for (let round = 0; round < 3; round++) {
      await pass(200);
      standstill.begin();
      await pass(10_000);
      standstill.end();
    }
    expect(standstill.totalMs).toBe(30_000);
    await pass(399);
    expect(due).toEqual([]);
    await pass(1);
    expect(due).toEqual([31_000]);
  });

  test("never comes while the guest is paused, and comes afterwards", async () => {
    const { standstill, due } = watched(1000);
    await pass(900);
    standstill.begin();
    await pass(86_400_000);
    expect(due).toEqual([]);
    standstill.end();
    await pass(99);
    expect(due).toEqual([]);
    await pass(1);
    expect(due).toHaveLength(1);
  });

  test("does not count pauses before it", async () => {
    const standstill = new PausableDeadlines();
    standstill.begin();
    await pass(5000);
    standstill.end();
    let due = false;
    afterGuestMs(standstill, 1000, () => {
      due = true;
    });
    await pass(999);
    expect(due).toBe(false);
    await pass(1);
    expect(due).toBe(true);
  });

  test("is never due once cancelled, also during a pause", async () => {
    for (const still of [false, true]) {
      const { standstill, due, giveUp } = watched(1000);
      if (still) {
        standstill.begin();
        await pass(2000);
      }
      giveUp();
      standstill.end();
      await pass(10_000);
      expect(due).toEqual([]);
    }
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("a pause starts once and ends once", async () => {
  const standstill = new PausableDeadlines();
  standstill.end();
  standstill.begin();
  standstill.begin();
  await pass(10);
  expect([standstill.times, standstill.totalMs]).toEqual([1, 10]);
  let over = false;
  const waited = standstill.over.then(() => {
    over = true;
  });
  await pass(10);
  expect(over).toBe(false);
  standstill.end();
  await waited;
  standstill.end();
  expect([standstill.times, standstill.totalMs]).toEqual([1, 20]);
  await standstill.over;
});

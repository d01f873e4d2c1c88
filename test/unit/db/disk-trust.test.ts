/** When the event loop may wait for the disk, by made-up times. */
import { expect, test } from "vitest";
import { DiskTrust } from "../../../daemon/db/disk-trust.ts";

/** So many quick flushes, a millisecond apart; returns when they are over. */
function quickFlushes(trust: DiskTrust, count: number, fromMs: number): number {
  for (let n = 0; n < count; n++) trust.took(0.2, fromMs + n);
  return fromMs + count;
}

test("a new disk is trusted once it was quick for a second, and eight times", () => {
  const trust = new DiskTrust(0);
  expect(trust.isQuick(5_000)).toBe(false);
  quickFlushes(trust, 7, 5_000);
  expect(trust.isQuick(5_100)).toBe(false);
  quickFlushes(trust, 1, 5_100);
  expect(trust.isQuick(5_200)).toBe(true);
  const early = new DiskTrust(0);
  quickFlushes(early, 100, 0);
  expect([early.isQuick(999), early.isQuick(1_000)]).toEqual([false, true]);
});

test("one slow flush ends that, and the while doubles up to a minute when trust was too soon", () => {
  const trust = new DiskTrust(0);
  let atMs = 0;
  const whiles: number[] = [];
  for (let round = 0; round < 9; round++) {
    const slowAtMs = atMs;
    atMs = quickFlushes(trust, 8, atMs);
    while (!trust.isQuick(atMs)) atMs++;
    whiles.push(atMs - slowAtMs);
    trust.took(2.1, atMs);
    expect(trust.isQuick(atMs)).toBe(false);
  }
  expect(whiles).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1000));
});

test("a flush that is slow in the thread begins the while anew, which stays as long as it was", () => {
  const trust = new DiskTrust(0);
  trust.took(500, 900);
  quickFlushes(trust, 8, 901);
  expect([trust.isQuick(1_899), trust.isQuick(1_900)]).toEqual([false, true]);
});

/** The guest's clock as it is set from the host: exact to the fastest round trip, however slow the others are. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { clockSkewMs, correctClock } from "../../../../daemon/host/guest-link/clock.ts";
import type { GuestLink } from "../../../../daemon/host/guest-link/handshake.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

let clock: MovedClock;
beforeEach(() => {
  clock = new MovedClock();
});
afterEach(() => clock[Symbol.dispose]());

/** Time of a request on its way to the guest, and of its answer on the way back. */
type RoundTrip = readonly [toGuestMs: number, backMs: number];

/** A guest with a wrong clock. The last round trip repeats. */
function guest(offMs: number, trips: readonly RoundTrip[]) {
  const state = { offMs, asked: 0 };
  const open = ({ adjust_ns = "0" }: { adjust_ns?: string }) => {
    const [toGuestMs, backMs] = trips[Math.min(state.asked++, trips.length - 1)] ?? [0, 0];
    clock.pass(toGuestMs);
    state.offMs += Number(adjust_ns) / 1_000_000;
    const clockMs = Date.now() + state.offMs;
    clock.pass(backMs);
    return { finished: Promise.resolve({ clock_ns: `${Math.round(clockMs * 1000)}000` }), fail: () => {} };
  };
  return { state, link: { open } as unknown as GuestLink };
}

test("is set correctly by one correction if replies are fast", async () => {
  const { state, link } = guest(-40, [[1, 1]]);
  await correctClock(link);
  expect(Math.abs(state.offMs)).toBeLessThan(1);
  expect(state.asked).toBe(2);
});

test("is read only once if it is right and the reply is fast", async () => {
  const { state, link } = guest(0.5, [[1, 1]]);
  await correctClock(link);
  expect(state).toEqual({ offMs: 0.5, asked: 1 });
});

test("is as exact as the fastest reply, whichever that is", async () => {
  const slow: RoundTrip = [10, 790];
  for (const fastest of [0, 1, 2]) {
    const trips = [slow, slow, slow, slow].map((trip, index) => (index === fastest ? ([2, 4] as const) : trip));
    const { state, link } = guest(-200, trips);
    await correctClock(link);
    expect([fastest, Math.abs(state.offMs) <= 3]).toEqual([fastest, true]);
  }
});

test("is read again if a slow reply seems right by chance", async () => {
  const { state, link } = guest(-390, [
    [790, 10],
    [1, 1],
  ]);
  await correctClock(link);
  expect(Math.abs(state.offMs)).toBeLessThan(1);
  expect(await clockSkewMs(link)).toBe(0);
});

test.each([1, -1])("follows a change of the host's wall clock by %i h", async (hours) => {
  const { state, link } = guest(0, [[1, 1]]);
  await correctClock(link);
  clock.step(hours * 3_600_000);
  // The guest keeps the time that it had.
  state.offMs = -hours * 3_600_000;
  await correctClock(link);
  expect(Math.abs(state.offMs)).toBeLessThan(1);
});

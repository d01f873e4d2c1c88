/** Reads from a guest's serial console: bounded in number, so that a flood of single bytes costs little, and never dropped. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { consoleHandlers } from "../../../../daemon/host/machine/console.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => vi.useRealTimers());

const BYTE = Uint8Array.of(10);

function guest() {
  const told = { logged: 0, heard: 0, closed: 0 };
  const socket = {
    isReading: true,
    pause: () => {
      socket.isReading = false;
      return true;
    },
    resume: () => {
      socket.isReading = true;
      return true;
    },
  };
  const log = { append: () => void told.logged++, close: () => void told.closed++ };
  const handlers = consoleHandlers(log, () => void told.heard++);
  /** Single bytes as long as they are read; returns how many. */
  const flood = () => {
    let reads = 0;
    for (; socket.isReading && reads < 1_000_000; reads++) handlers.data(socket, BYTE);
    return reads;
  };
  return { told, socket, handlers, flood };
}

test("a boot is read as it arrives, and a flood 500 times a second", () => {
  const { told, flood } = guest();
  const boot = flood();
  expect(boot).toBeGreaterThanOrEqual(20_000);
  expect(boot).toBeLessThan(20_100);
  let reads = 0;
  for (let ms = 0; ms < 10_000; ms++) {
    vi.advanceTimersByTime(1);
    reads += flood();
  }
  expect(reads).toBeGreaterThan(4_000);
  expect(reads).toBeLessThan(5_100);
  expect(told).toEqual({ logged: boot + reads, heard: boot + reads, closed: 0 });
});

test("a console that is quiet again is read as before", () => {
  const { flood } = guest();
  flood();
  vi.advanceTimersByTime(60_000);
  expect(flood()).toBeGreaterThanOrEqual(20_000);
});

test("a console that closes while it is paused has no timer left", () => {
  const { told, socket, handlers, flood } = guest();
  flood();
  handlers.close();
  expect([vi.getTimerCount(), told.closed, socket.isReading]).toEqual([0, 1, false]);
});

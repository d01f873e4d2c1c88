/** Holders of keys: closed once when the key is revoked, released before, and checked together. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RevocationWatch } from "../../../../daemon/core/call/revocation-watch.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const setUp = () => {
  const good = new Set(["a", "b"]);
  const asked: string[] = [];
  const cut: string[] = [];
  const holds = new RevocationWatch();
  const hold = (id: string, name: string) =>
    holds.hold(
      id,
      () => {
        asked.push(id);
        return good.has(id);
      },
      () => void cut.push(name),
    );
  return { good, asked, cut, holds, hold };
};

test("holders of a revoked key are closed, once, and no others", () => {
  const { good, cut, holds, hold } = setUp();
  hold("a", "a1");
  hold("a", "a2");
  hold("b", "b1");
  good.delete("a");
  holds.look();
  holds.look();
  expect(cut).toEqual(["a1", "a2"]);
});

test("a revocation by another process is noticed within a second", () => {
  const { good, cut, hold } = setUp();
  hold("a", "a1");
  good.delete("a");
  vi.advanceTimersByTime(1000);
  expect(cut).toEqual(["a1"]);
});

test("a released holder is not closed, not even during another one's close", () => {
  const { good, cut, holds, hold } = setUp();
  hold("a", "a1")();
  const leave: (() => void)[] = [];
  holds.hold(
    "a",
    () => good.has("a"),
    () => {
      for (const each of leave) each();
    },
  );
  leave.push(hold("a", "a2"));
  good.delete("a");
  holds.look();
  expect(cut).toEqual([]);
});

test("a key is checked once for all of its holders, and not at all without a holder", () => {
  const { asked, holds, hold } = setUp();
  const leave = Array.from({ length: 100 }, (_, n) => hold("a", `a${n}`));
  holds.look();
  expect(asked).toEqual(["a"]);
  for (const each of leave) each();
  vi.advanceTimersByTime(10_000);
  expect(asked).toEqual(["a"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("a key that was revoked and is held again under its id is checked again", () => {
  const { good, cut, holds, hold } = setUp();
  const leave = hold("a", "a1");
  good.delete("a");
  holds.look();
  good.add("a");
  hold("a", "a2");
  leave();
  good.delete("a");
  holds.look();
  expect(cut).toEqual(["a1", "a2"]);
});

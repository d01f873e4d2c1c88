/** Holders of keys: closed once when the key is revoked, released before, and checked together. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Holds } from "../../../daemon/core/holds.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const setUp = () => {
  const good = new Set(["a", "b"]);
  const asked: string[] = [];
  const cut: string[] = [];
  const holds = new Holds();
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

test("what is held by a key that has ended is cut, once, and nothing else", () => {
  const { good, cut, holds, hold } = setUp();
  hold("a", "a1");
  hold("a", "a2");
  hold("b", "b1");
  good.delete("a");
  holds.look();
  holds.look();
  expect(cut).toEqual(["a1", "a2"]);
});

test("another process' revocation is noticed within a second", () => {
  const { good, cut, hold } = setUp();
  hold("a", "a1");
  good.delete("a");
  vi.advanceTimersByTime(1000);
  expect(cut).toEqual(["a1"]);
});

test("what has let go is not cut, also from within another's cut", () => {
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

test("a key is asked about once, however much holds on to it, and not at all when nothing does", () => {
  const { asked, holds, hold } = setUp();
  const leave = Array.from({ length: 100 }, (_, n) => hold("a", `a${n}`));
  holds.look();
  expect(asked).toEqual(["a"]);
  for (const each of leave) each();
  vi.advanceTimersByTime(10_000);
  expect(asked).toEqual(["a"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("a key that ended and is held anew under its id is asked about anew", () => {
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

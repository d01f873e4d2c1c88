/** The published value: every waiter sees the first value it waits for, or its deadline, and is then forgotten. */
import { describe, expect, test } from "vitest";
import { DeadlineError, orAfter, Published, within } from "../../../../daemon/core/concurrency/published.ts";

const FAR = 60_000;

describe("a waiter", () => {
  test("is answered immediately if its condition holds already", async () => {
    expect(await new Published(3).until((value) => value === 3, 0)).toBe(3);
  });

  test("is answered with the value that met its condition, even if the value has changed since", async () => {
    const published = new Published("a");
    const waiting = published.until((value) => value === "b", FAR);
    published.set("b");
    published.set("c");
    expect(await waiting).toBe("b");
    expect(published.value).toBe("c");
  });

  test("is independent of any number of others, each with its own condition", async () => {
    const published = new Published(0);
    const waiting = Array.from({ length: 100 }, (_, n) => published.until((value) => value > n, FAR));
    for (let value = 1; value <= 100; value++) published.set(value);
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1));
  });

  test("times out at its deadline and is not checked afterwards", async () => {
    const published = new Published(0);
    let callCount = 0;
    const waiting = published.until(() => {
      callCount++;
      return false;
    }, 5);
    await expect(waiting).rejects.toThrow(DeadlineError);
    const before = callCount;
    published.set(1);
    expect(callCount).toBe(before);
  });

  test("can be aborted, before or after it starts to wait", async () => {
    const published = new Published(0);
    const giveUp = new AbortController();
    const waiting = published.until((value) => value === 1, FAR, giveUp.signal);
    giveUp.abort();
    await expect(waiting).rejects.toBeInstanceOf(DeadlineError);
    await expect(published.until((value) => value === 1, FAR, giveUp.signal)).rejects.toBeInstanceOf(DeadlineError);
    expect(await published.until((value) => value === 0, FAR, giveUp.signal)).toBe(0);
    published.set(1);
  });

  test("may set the value in its own continuation", async () => {
    const published = new Published(0);
    const seen: number[] = [];
    const follow = async (n: number): Promise<void> => {
      seen.push(await published.until((value) => value === n, FAR));
      if (n < 5) {
        const next = follow(n + 1);
        published.set(n + 1);
        await next;
      }
    };
    const following = follow(1);
    published.set(1);
    await following;
    expect(seen).toEqual([1, 2, 3, 4, 5]);
  });
});

test("the generation counts every set, including an equal value", () => {
  const published = new Published("same");
  expect(published.generation).toBe(0);
  published.set("same");
  published.set("same");
  expect(published.generation).toBe(2);
});

describe("within", () => {
  test("passes on the promise's outcome if it is in time", async () => {
    expect(await within(Promise.resolve(7), FAR, "it")).toBe(7);
    await expect(within(Promise.reject(new Error("its own")), FAR, "it")).rejects.toThrow("its own");
  });

  test("names the operation that took too long; its later failure is not unhandled", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    const work = Promise.withResolvers<never>();
    await expect(within(work.promise, 5, "booting")).rejects.toThrow(/^booting .* 5 ms$/);
    work.reject(new Error("late"));
    for (let turn = 0; turn < 5; turn++) await new Promise((done) => setImmediate(done));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });
});

describe("orAfter", () => {
  test("settles like its work, which it does not wait for beyond the time or the signal", async () => {
    expect(await orAfter(Promise.resolve(7), FAR, "late")).toBe(7);
    await expect(orAfter(Promise.reject(new Error("its own")), FAR, "late")).rejects.toThrow("its own");
    const work = Promise.withResolvers<number>();
    expect(await orAfter(work.promise, 5, "late")).toBe("late");
    const stop = new AbortController();
    const waiting = orAfter(work.promise, FAR, "late", stop.signal);
    stop.abort();
    expect(await waiting).toBe("late");
    expect(await orAfter(work.promise, FAR, "late", stop.signal)).toBe("late");
  });
});

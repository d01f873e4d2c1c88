import { describe, expect, test } from "vitest";
import { Notifier } from "../../../../daemon/core/concurrency/notifier.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";

const never = new AbortController().signal;
const destroyed = () => new ServiceError("room_destroying");

function waiter(
  bells: Notifier,
  look: () => number | null,
  options: { signal?: AbortSignal; deadlineMs?: number } = {},
) {
  return bells.wait("room", { key: "k", owner: "host", deadlineMs: 60_000, signal: never, ...options }, look);
}

describe("a bell", () => {
  test("wakes all waiters, which check again until they find something", async () => {
    const bells = new Notifier();
    let seq = 0;
    const looks: number[] = [];
    const waiting = waiter(bells, () => {
      looks.push(seq);
      return seq >= 2 ? seq : null;
    });
    for (seq = 1; seq <= 2; seq++) {
      bells.ring("room", "other");
      bells.ring("room", "k");
      await Promise.resolve();
      await Bun.sleep(0);
    }
    expect(await waiting).toBe(2);
    expect(looks).toEqual([0, 1, 2]);
  });

  test("that rings during a waiter's check is not missed", async () => {
    const bells = new Notifier();
    let looks = 0;
    const found = await waiter(bells, () => {
      if (looks++ === 0) bells.ring("room", "k");
      return looks > 1 ? looks : null;
    });
    expect(found).toBe(2);
  });

  test("stays in use for a waiter that finds nothing, even if another one has found something and left", async () => {
    const bells = new Notifier();
    let [one, two] = [0, 0];
    const first = waiter(bells, () => one || null);
    const second = waiter(bells, () => two || null);
    one = 1;
    bells.ring("room", "k");
    expect(await first).toBe(1);
    two = 2;
    bells.ring("room", "k");
    expect(await second).toBe(2);
  });

  test("ends a wait at its deadline and on abort of its signal", async () => {
    const bells = new Notifier();
    expect(await waiter(bells, () => null, { deadlineMs: 10 })).toBeNull();
    const controller = new AbortController();
    const waiting = waiter(bells, () => null, { signal: controller.signal });
    controller.abort();
    expect(await waiting).toBeNull();
  });

  test("ends all waits of a group with its error, including later ones and failing checks", async () => {
    const bells = new Notifier();
    const waits = Array.from({ length: 100 }, () => waiter(bells, () => null));
    const other = bells.wait("other", { key: "k", owner: "host", deadlineMs: 50, signal: never }, () => null);
    bells.end("room", destroyed());
    for (const outcome of await Promise.allSettled([...waits, waiter(bells, () => null)])) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "room_destroying" } });
    }
    expect(await other).toBeNull();
    bells.close(new ServiceError("shutting_down"));
    await expect(
      bells.wait("other", { key: "k", owner: "host", deadlineMs: 50, signal: never }, () => null),
    ).rejects.toMatchObject({
      code: "shutting_down",
    });
  });

  test("finds existing values even after the end", async () => {
    const bells = new Notifier();
    bells.end("room", destroyed());
    expect(await waiter(bells, () => 7)).toBe(7);
  });
});

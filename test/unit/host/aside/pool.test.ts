/** The aside thread: bounds of its input, its deadline, its end during a task, and owners that take turns. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Log } from "../../../../daemon/core/log.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { type AsideOptions, AsidePool } from "../../../../daemon/host/aside/pool.ts";
import {
  doubledOfTask,
  longOfTask,
  MAX_BYTES,
  misfortuneOfTask,
  placeOfTask,
  SMALL_BYTES,
} from "../../../harness/event-loop/aside-thread.ts";

const BY = { owner: "org:org_1" } as const;
const REST_MS = 400;

let pool: AsidePool;
let starts: number[];
let warned: string[];

beforeEach(() => {
  [starts, warned] = [[], []];
});
afterEach(() => pool.close());

async function opened(options: Partial<AsideOptions> = {}): Promise<AsidePool> {
  pool = new AsidePool({
    start: () => {
      starts.push(performance.now());
      return new Worker(new URL("../../../harness/event-loop/aside-thread.ts", import.meta.url).href);
    },
    log: { warn: (message: string) => void warned.push(message) } as unknown as Log,
    cpuMs: 200,
    restMs: REST_MS,
    ...options,
  });
  await pool.started();
  return pool;
}

type Misfortune = Parameters<typeof misfortuneOfTask.run>[0]["is"];
const times = (count: number) => {
  const left = new Int32Array(new SharedArrayBuffer(4));
  left[0] = count;
  return left;
};
const befall = (is: Misfortune, count = 1) => pool.run(misfortuneOfTask, { is, times: times(count) }, BY);
const placeOf = (bytes: number) => pool.run(placeOfTask, { bytes }, BY);

test("a short input is computed on the event loop, a longer one in the thread, and one too long nowhere", async () => {
  await opened();
  expect(await Promise.all([SMALL_BYTES, SMALL_BYTES + 1, MAX_BYTES].map(placeOf))).toEqual([
    "loop",
    "thread",
    "thread",
  ]);
  await expect(placeOf(MAX_BYTES + 1)).rejects.toThrow(/test\.place .*\b1001 bytes/);
});

test("without a thread all tasks are computed on the event loop", async () => {
  pool = new AsidePool(null);
  expect(await placeOf(MAX_BYTES)).toBe("loop");
});

test("buffers are transferred both ways without a copy", async () => {
  await opened();
  const { buffer } = new Uint8Array([1, 2, 3]);
  const made = await pool.run(doubledOfTask, { buffer }, BY);
  expect([[...new Uint8Array(made.buffer)], buffer.byteLength]).toEqual([[2, 4, 6], 0]);
});

test("an error of a task rejects it alone, with a ServiceError's fields, and leaves the thread running", async () => {
  await opened();
  await expect(befall("fail")).rejects.toThrow("as a test asked for");
  const refusal = await befall("refuse").catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(ServiceError);
  expect(refusal).toMatchObject({ code: "validation_failed", options: { details: { at: 1 } } });
  expect([starts.length, warned]).toEqual([1, []]);
});

test("owners take turns: a task waits for one task of another owner, not for all of them", async () => {
  await opened();
  const many = Array.from({ length: 20 }, () => pool.run(longOfTask, { ms: 5 }, BY));
  const before = await pool.run(longOfTask, { ms: 5 }, { owner: "org:org_2" });
  expect(before).toBeLessThan(5);
  await Promise.all(many);
});

test("a cancelled task is not computed", async () => {
  await opened();
  const left = new AbortController();
  const long = pool.run(longOfTask, { ms: 100 }, BY);
  const unwanted = expect(pool.run(longOfTask, { ms: 1 }, { ...BY, signal: left.signal })).rejects.toThrow("aborted");
  left.abort();
  await unwanted;
  expect([await long, await pool.run(longOfTask, { ms: 1 }, BY)]).toEqual([0, 1]);
});

describe("a thread that ends", () => {
  test.each(["endless", "exit"] as const)(
    "by a task (%s): the error is internal, and others run in its replacement",
    async (is) => {
      await opened();
      const ending = expect(befall(is, 2)).rejects.toMatchObject({ code: "internal" });
      const { buffer } = new Uint8Array(1);
      const others = Array.from({ length: 3 }, () => placeOf(100));
      const transferred = expect(pool.run(doubledOfTask, { buffer }, BY)).rejects.toMatchObject({ code: "not_ready" });
      await Promise.all([ending, transferred]);
      expect(await Promise.all(others)).toEqual(["thread", "thread", "thread"]);
      expect([starts.length, warned]).toEqual([2, [expect.stringContaining("aside thread")]]);
    },
  );

  test("is replaced immediately the first time, and then after a delay", async () => {
    await opened();
    await expect(befall("exit")).rejects.toMatchObject({ code: "internal" });
    expect(await placeOf(100)).toBe("thread");
    expect(pool.isDegraded).toBe(false);
    await expect(befall("exit")).rejects.toMatchObject({ code: "internal" });
    expect(await placeOf(100)).toBe("thread");
    const [, first = 0, second = 0] = starts;
    expect(second - first).toBeGreaterThanOrEqual(REST_MS - 1);
    await expect(befall("exit")).rejects.toMatchObject({ code: "internal" });
    expect(pool.isDegraded).toBe(true);
    expect(await placeOf(100)).toBe("thread");
  });
});

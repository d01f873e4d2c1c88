/** Concurrency limit of batch calls, and its distribution among organizations. */
import { expect, test } from "vitest";
import { BatchLimit } from "../../../../daemon/edge/pipeline/batch-limit.ts";

/** Calls that stay until they are released, and the order in which they started. */
function callsOf(many: BatchLimit) {
  const began: string[] = [];
  const leaving = new Map<string, () => void>();
  return {
    began,
    call: (org: string, name: string, things: number) =>
      void many.enter(org, things).then((leave) => {
        began.push(name);
        leaving.set(name, leave);
      }),
    leave: async (name: string) => {
      leaving.get(name)?.();
      await Bun.sleep(0);
    },
  };
}

test("calls start while there are slots; one that needs more waits, and later ones wait behind it", async () => {
  const calls = callsOf(new BatchLimit());
  for (const [name, things] of [
    ["a", 100],
    ["b", 28],
    ["c", 30],
    ["d", 1],
  ] as const)
    calls.call("org", name, things);
  await Bun.sleep(0);
  expect(calls.began).toEqual(["a", "b"]);
  await calls.leave("b");
  expect(calls.began).toEqual(["a", "b"]);
  await calls.leave("a");
  expect(calls.began).toEqual(["a", "b", "c", "d"]);
});

test("a call that needs more than all slots gets all of them", async () => {
  const calls = callsOf(new BatchLimit());
  for (const [name, things] of [
    ["a", 256],
    ["b", 2],
    ["c", 256],
    ["d", 2],
  ] as const)
    calls.call("org", name, things);
  await Bun.sleep(0);
  for (const [name, after] of [
    ["a", "ab"],
    ["b", "abc"],
    ["c", "abcd"],
  ] as const) {
    await calls.leave(name);
    expect(calls.began.join("")).toBe(after);
  }
});

test("organizations take turns, for any number of waiting calls", async () => {
  const calls = callsOf(new BatchLimit());
  for (let n = 0; n < 10; n++) calls.call("busy", `busy ${n}`, 128);
  calls.call("other", "other", 16);
  await Bun.sleep(0);
  for (const name of ["busy 0", "busy 1"]) await calls.leave(name);
  expect(calls.began).toEqual(["busy 0", "busy 1", "other"]);
});

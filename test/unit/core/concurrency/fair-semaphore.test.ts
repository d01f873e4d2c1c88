/** The order in which callers get a slot, and the limit of each share. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Asker, FairSemaphore } from "../../../../daemon/core/concurrency/fair-semaphore.ts";
import { DeadlineError } from "../../../../daemon/core/concurrency/published.ts";

const LONG_MS = 60_000;
const asker = (name: string): Asker => ({ org_id: name.charAt(0), sandbox_id: name });

/** Requests slots in this order; returns the callers admitted so far, and releases the first of them. */
function asked(places: FairSemaphore, names: string[]) {
  const entered: { name: string; leave: () => void }[] = [];
  for (const name of names) {
    // Some still wait when a test ends.
    void places.take(asker(name), LONG_MS).then(
      (leave) => entered.push({ name, leave }),
      () => {},
    );
  }
  return {
    entered: async () => {
      await Promise.resolve();
      return entered.map(({ name }) => name);
    },
    leaveOne: () => entered.shift()?.leave(),
  };
}

test("organizations take turns, and so do the sandboxes of each", async () => {
  const places = new FairSemaphore({ all: 1, org: 1, sandbox: 1, waiting: 100 });
  const leave = await places.take(asker("z1"), LONG_MS);
  const { entered, leaveOne } = asked(places, ["a1", "a1", "a1", "a2", "b1", "b1", "c1"]);
  leave();
  const order: string[] = [];
  for (let turn = 0; turn < 7; turn++) {
    order.push(...(await entered()));
    leaveOne();
  }
  expect(order).toEqual(["a1", "b1", "c1", "a2", "b1", "a1", "a1"]);
});

test("a caller with a full share waits, although places are free for others", async () => {
  const places = new FairSemaphore({ all: 8, org: 3, sandbox: 2, waiting: 100 });
  const { entered } = asked(places, ["a1", "a1", "a1", "a2", "a2", "b1"]);
  expect(await entered()).toEqual(["a1", "a1", "a2", "b1"]);
});

test("a wait that takes too long or exceeds the queue is refused", async () => {
  const places = new FairSemaphore({ all: 1, org: 1, sandbox: 1, waiting: 1 });
  const leave = await places.take(asker("a1"), LONG_MS);
  const late = places.take(asker("a1"), 20);
  await expect(places.take(asker("a1"), LONG_MS)).rejects.toThrow(DeadlineError);
  await expect(late).rejects.toThrow(/ 20 ms$/);
  const next = places.take(asker("a1"), LONG_MS);
  leave();
  (await next)();
});

test("an aborted caller leaves the queue and its turn to others", async () => {
  const places = new FairSemaphore({ all: 1, org: 1, sandbox: 1, waiting: 2 });
  const leave = await places.take(asker("a1"), LONG_MS);
  const controller = new AbortController();
  const left = places.take(asker("a1"), LONG_MS, controller.signal);
  const next = places.take(asker("a1"), LONG_MS);
  controller.abort();
  await expect(left).rejects.toThrow("cancelled");
  await expect(places.take(asker("b1"), LONG_MS, controller.signal)).rejects.toThrow("cancelled");
  leave();
  (await next)();
});

test("no share is ever exceeded, and all callers get a place in the end", async () => {
  const name = fc.constantFrom("a1", "a2", "a3", "b1", "b2", "c1");
  await fc.assert(
    fc.asyncProperty(fc.array(name, { maxLength: 60 }), async (names) => {
      const { entered, leaveOne } = asked(new FairSemaphore({ all: 6, org: 4, sandbox: 2, waiting: 100 }), names);
      let left = names.length;
      for (let now = await entered(); now.length > 0; now = await entered()) {
        const count = (begin: string) => now.filter((each) => each.startsWith(begin)).length;
        expect(now.length).toBeLessThanOrEqual(6);
        for (const org of ["a", "b", "c"]) expect(count(org)).toBeLessThanOrEqual(4);
        for (const each of new Set(now)) expect(count(each)).toBeLessThanOrEqual(2);
        leaveOne();
        left--;
      }
      expect(left).toBe(0);
    }),
  );
});

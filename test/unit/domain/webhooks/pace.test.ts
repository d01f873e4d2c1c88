/** How many events of an organization are sent in a second. */
import { expect, test } from "vitest";
import { Pace } from "../../../../daemon/domain/webhooks/pace.ts";
import type { OrgId } from "../../../../shared/ids.ts";

const [MANY, FEW] = ["org_many", "org_few"] as [OrgId, OrgId];
const ever = new AbortController().signal;

test("an organization with many events is paced in order, and delays no other", async () => {
  const pace = new Pace({ perSecond: 100, atOnce: 5 });
  const began = performance.now();
  const entered: number[] = [];
  const all = Array.from({ length: 25 }, async (_, n) => {
    await pace.take(MANY, ever);
    entered.push(n);
  });
  await pace.take(FEW, ever);
  expect(performance.now() - began).toBeLessThan(100);
  expect(entered.length).toBeLessThan(10);
  await Promise.all(all);
  expect(performance.now() - began).toBeGreaterThanOrEqual(190);
  expect(entered).toEqual(all.map((_, n) => n));
});

test("an aborted wait returns its tokens", async () => {
  const pace = new Pace({ perSecond: 1, atOnce: 1 });
  await pace.take(MANY, ever);
  const given = new AbortController();
  const waiting = Array.from({ length: 100 }, () => pace.take(MANY, given.signal));
  given.abort();
  for (const each of await Promise.allSettled(waiting)) expect(each).toMatchObject({ status: "rejected" });
  await expect(pace.take(MANY, given.signal)).rejects.toThrow("cancelled");
  const began = performance.now();
  await pace.take(MANY, ever);
  expect(performance.now() - began).toBeLessThan(1500);
});

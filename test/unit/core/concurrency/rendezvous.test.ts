import { expect, test } from "vitest";
import { Rendezvous } from "../../../../daemon/core/concurrency/rendezvous.ts";

const never = new AbortController().signal;

test("all parties wait for each other and proceed together", async () => {
  const meeting = new Rendezvous(2);
  const order: string[] = [];
  const party = async (name: string) => {
    await meeting.arrive(never);
    order.push(name);
  };
  const first = party("one");
  await Promise.resolve();
  let isThere = false;
  const all = meeting.all.then(() => {
    isThere = true;
  });
  await Bun.sleep(1);
  expect(isThere).toBe(false);
  const second = party("two");
  await all;
  expect(order).toEqual([]);
  meeting.release();
  await Promise.all([first, second]);
  expect(order).toEqual(["one", "two"]);
});

test("a meeting without parties is complete immediately", async () => {
  await new Rendezvous(0).all;
});

test("an aborted or failed party ends it for all, which receive the first reason", async () => {
  const meeting = new Rendezvous(3);
  const ending = new AbortController();
  const waits = [meeting.arrive(never), meeting.arrive(ending.signal, () => new Error("it was ended"))];
  const outcomes = Promise.allSettled([...waits, meeting.all]);
  ending.abort();
  meeting.callOff(new Error("later"));
  meeting.release();
  for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: { message: "it was ended" } });
  await expect(meeting.arrive(never)).rejects.toThrow("it was ended");
});

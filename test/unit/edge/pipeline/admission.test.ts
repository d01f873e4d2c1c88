/** Start of requests: the delay beyond a rate, and the turns of networks, connections and keys. */
import { expect, test } from "vitest";
import type { Caller } from "../../../../daemon/core/call/operation.ts";
import { LoopTime } from "../../../../daemon/core/loop/index.ts";
import { Admission } from "../../../../daemon/edge/pipeline/admission.ts";

const REFUSED_MS = 50;

const makeBegin = () =>
  new Admission(
    new LoopTime({
      now: () => performance.now(),
      defer: (callback) => void setImmediate(callback),
      after: (ms, callback) => void setTimeout(callback, ms),
      cpu: () => performance.now(),
    }),
    REFUSED_MS,
  );

const callerOf = (org_id: string, key_id: string) => ({ org_id, key_id }) as unknown as Caller;

/** Uses up the time of the turn in which requests start without waiting. */
function useTurn(begin: Admission): void {
  begin.goesOn(callerOf("org_busy", "key"), "work");
  const until = performance.now() + 5;
  while (performance.now() < until);
}

test("a call above its rate is delayed, and others are not", async () => {
  const begin = makeBegin();
  const startedAt = performance.now();
  const late = begin.call(callerOf("org_a", "key"), "room_get", false);
  expect(begin.call(callerOf("org_a", "key"), "room_get", true)).toBeNull();
  await late;
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(REFUSED_MS - 1);
});

test("a refused client without a key is delayed", async () => {
  const startedAt = performance.now();
  await makeBegin().refused();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(REFUSED_MS - 1);
});

test("the last request of an organization waits for one of another, for any length of its queue", async () => {
  const begin = makeBegin();
  useTurn(begin);
  const order: string[] = [];
  const enter = (org: string) => {
    const turn = begin.call(callerOf(org, "key"), "room_get", true);
    expect(turn).not.toBeNull();
    return turn?.then(() => void order.push(org));
  };
  await Promise.all([...Array.from({ length: 200 }, () => enter("org_a")), enter("org_b")]);
  // Up to four short pieces of an organization start together.
  expect(order.indexOf("org_b")).toBeLessThanOrEqual(4);
});

test("connections of a network take turns, and so do networks of one IPv6 site and others", async () => {
  const begin = makeBegin();
  useTurn(begin);
  const order: string[] = [];
  const enter = (ip: string, connection: string) =>
    begin.request(ip, connection)?.then(() => void order.push(`${ip} ${connection}`));
  await Promise.all([
    ...Array.from({ length: 100 }, () => enter("2001:db8::1", "1")),
    enter("2001:db8::2", "2"),
    enter("192.0.2.7", "1"),
  ]);
  // Of the same site as the first, and so after the other network.
  expect(order.indexOf("192.0.2.7 1")).toBe(1);
  expect(order.indexOf("2001:db8::2 2")).toBe(2);
});

test("a connection of a known organization does not wait for all others of its network", async () => {
  const begin = makeBegin();
  begin.request("192.0.2.7", "known");
  begin.call(callerOf("org_b", "key"), "me_get", true, "known");
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  const order: string[] = [];
  const enter = (connection: string) =>
    begin.request("192.0.2.7", connection)?.then(() => {
      order.push(connection);
      const until = performance.now() + 0.2;
      while (performance.now() < until);
    });
  const others = () => Array.from({ length: 100 }, (_, n) => enter(`other ${n}`));
  useTurn(begin);
  await Promise.all([...others(), enter("known")]);
  expect(order.indexOf("known")).toBeLessThanOrEqual(10);
  // A request without a key has no organization.
  order.length = 0;
  useTurn(begin);
  await Promise.all([...others(), enter("known")]);
  expect(order.at(-1)).toBe("known");
});

test("the first call of a request that queued as its organization's does not queue again; the next does", async () => {
  const begin = makeBegin();
  const caller = callerOf("org_b", "key");
  for (const connection of ["one", "two"]) {
    begin.request("192.0.2.7", connection);
    begin.call(caller, "me_get", true, connection);
  }
  useTurn(begin);
  const [first] = ["one", "two"].map((connection) => begin.request("192.0.2.7", connection));
  await first;
  expect(begin.call(caller, "me_get", true, "one")).toBeNull();
  expect(begin.call(caller, "me_get", true, "one")).not.toBeNull();
});

/** The criterion of an idle sandbox, and the action that follows. */
import { describe, expect, test } from "vitest";
import { until } from "../../../../harness/guests.ts";
import { MovedClock } from "../../../../harness/hosts/moved-clock.ts";
import { IDLE_MS, restingSandbox } from "../resting-fixture.ts";

const idle_timeout_seconds = 1;

test.each([
  ["hibernate", "hibernated", "sandbox.hibernated idle success"],
  ["standby", "paused", "sandbox.standby idle success"],
] as const)("%s: it is %s, without a call, and it stays so", async (on_idle, state, event) => {
  using clock = new MovedClock();
  using made = await restingSandbox({ on_idle, idle_timeout_seconds }, undefined, clock);
  await made.reached(state);
  await until("the transition is recorded", () => made.events.length > 0);
  clock.pass(IDLE_MS * 3);
  await made.supervisor.change({});
  expect(made.supervisor.row).toMatchObject({ state, status_reason: "idle" });
  expect([made.events, made.given.ended]).toEqual([[event], 0]);
});

test("destroy: it ends", async () => {
  using clock = new MovedClock();
  using made = await restingSandbox({ on_idle: "destroy", idle_timeout_seconds }, undefined, clock);
  clock.pass(IDLE_MS);
  await until("the guest is ended", () => made.given.ended === 1);
  expect(made.events).toEqual([]);
});

test("in use it is not idle, and afterwards not for another idle time", async () => {
  using clock = new MovedClock();
  using made = await restingSandbox({ idle_timeout_seconds }, undefined, clock);
  await made.idleness.use(made.id, async () => clock.pass(IDLE_MS * 3));
  const free = performance.now();
  expect(made.supervisor.row.state).toBe("running");
  await made.reached("hibernated");
  expect(performance.now() - free).toBeGreaterThan(IDLE_MS - 2);
});

describe("an execution that no client follows", () => {
  test("keeps it awake while that is busy, and no longer", async () => {
    using clock = new MovedClock();
    using made = await restingSandbox({ idle_timeout_seconds }, undefined, clock);
    const busyUntil = performance.now() + IDLE_MS * 6;
    // It uses 2 % of a CPU.
    const cpu = () => (Math.min(performance.now(), busyUntil) / 1000) * 0.02;
    made.given.activity = {
      traffic_at: null,
      get cpu_seconds() {
        return cpu();
      },
    };
    await made.reached("hibernated");
    expect(performance.now()).toBeGreaterThan(busyUntil);
  });

  test("does not keep it awake with less than one percent of a CPU", async () => {
    using clock = new MovedClock();
    using made = await restingSandbox({ idle_timeout_seconds }, undefined, clock);
    const since = performance.now();
    made.given.activity = {
      traffic_at: null,
      get cpu_seconds() {
        return (performance.now() / 1000) * 0.005;
      },
    };
    await made.reached("hibernated");
    expect(performance.now() - since).toBeLessThan(IDLE_MS * 20);
  });
});

test("traffic keeps it awake, for an idle time after the last byte", async () => {
  using clock = new MovedClock();
  using made = await restingSandbox({ idle_timeout_seconds }, undefined, clock);
  const lastAt = performance.now() + IDLE_MS * 6;
  made.given.activity = {
    cpu_seconds: null,
    get traffic_at() {
      return Math.min(performance.now(), lastAt);
    },
  };
  await made.reached("hibernated");
  expect(performance.now()).toBeGreaterThanOrEqual(lastAt + IDLE_MS - 2);
});

test("a sandbox used at the moment of its idle action keeps running", async () => {
  using clock = new MovedClock();
  using made = await restingSandbox({ idle_timeout_seconds }, undefined, clock);
  const busy = Promise.withResolvers<void>();
  // Something takes its time before.
  const adopted = made.supervisor.adopt(busy.promise);
  clock.pass(IDLE_MS * 2);
  await made.idleness.use(made.id, async () => {
    busy.resolve();
    await adopted;
    await made.supervisor.change({});
  });
  expect([made.supervisor.row.state, made.pretended.told]).toEqual(["running", []]);
  await made.reached("hibernated");
});

test("an unread message keeps it awake, but not permanently", async () => {
  using clock = new MovedClock();
  using made = await restingSandbox({ idle_timeout_seconds }, undefined, clock);
  made.given.isCalled = true;
  clock.pass(IDLE_MS * 5);
  await made.supervisor.change({});
  expect(made.supervisor.row.state).toBe("running");
  made.given.isCalled = false;
  await made.reached("hibernated");
  await made.waking.requireAwake(made.target);
  made.given.isCalled = true;
  const woken = performance.now();
  clock.pass(IDLE_MS * 59);
  await made.reached("hibernated");
  expect(performance.now() - woken).toBeGreaterThan(IDLE_MS * 60);
});

test("a sandbox that cannot be saved keeps running with a reason, and is retried with backoff", async () => {
  using clock = new MovedClock();
  using made = await restingSandbox({ idle_timeout_seconds }, undefined, clock);
  const tries: number[] = [];
  Object.assign(made.supervisor.guest ?? {}, {
    save: () => {
      tries.push(performance.now());
      return Promise.reject(new Error("it is too large"));
    },
  });
  await until(
    "five attempts were made",
    () => {
      clock.pass(IDLE_MS / 4);
      return tries.length === 5;
    },
    IDLE_MS * 100,
  );
  const pauses = tries.slice(1).map((at, index) => at - Number(tries[index]));
  for (const [index, pause] of pauses.entries()) expect(pause).toBeGreaterThan(IDLE_MS * 2 ** index - 2);
  await made.reached("running");
  expect(made.supervisor.row).toMatchObject({
    status_reason: "hibernate_failed",
    status_message: expect.stringContaining("it is too large"),
  });
  expect(made.events).toEqual(Array(3).fill("sandbox.hibernated idle error"));
  expect(made.warnings).toHaveLength(3);
});

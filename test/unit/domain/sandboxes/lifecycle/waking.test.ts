/** Events that wake a sandbox at rest, the callers that wait for it, and their errors if it does not wake. */
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { until } from "../../../../harness/guests.ts";
import { MovedClock } from "../../../../harness/hosts/moved-clock.ts";
import { IDLE_MS, restingSandbox } from "../resting-fixture.ts";

const restores = ({ pretended }: { pretended: { told: string[] } }) =>
  pretended.told.filter((each) => each === "restore").length;

describe("a call", () => {
  test("wakes it, once for all callers", async () => {
    using made = await restingSandbox({});
    await made.supervisor.hibernate();
    const { target } = made;
    await Promise.all(Array.from({ length: 5 }, () => made.waking.requireAwake(target)));
    expect([made.supervisor.row.state, restores(made)]).toEqual(["running", 1]);
    expect(made.events).toEqual(["sandbox.resume api success"]);
    expect([made.outcomes.resumes.api, made.outcomes.resumed.hibernated.atMost().at(-1)]).toEqual([1, 1]);
  });

  test.each(["standby", "hibernate"] as const)("waits for a sandbox that becomes %s, and wakes it", async (verb) => {
    using made = await restingSandbox({});
    const rests = made.supervisor[verb]();
    await made.reached(verb === "standby" ? "pausing" : "hibernating");
    await made.waking.requireAwake(made.target);
    await rests;
    expect(made.supervisor.row).toMatchObject({ state: "running", status_reason: "resumed" });
  });

  test("waits for a sandbox that another call resumes", async () => {
    using made = await restingSandbox({});
    await made.supervisor.hibernate();
    const { target } = made;
    const [resumed] = await Promise.all([made.supervisor.resume(), made.waking.requireAwake(target)]);
    expect([resumed.state, restores(made), made.events]).toEqual(["running", 1, []]);
  });

  test.each([
    ["if calls are not in its list", ["message"], false],
    ["if the call only reads", ["api"], true],
  ] as const)("wakes nothing %s", async (_, wake_on, isLookedAt) => {
    using made = await restingSandbox({ wake_on: [...wake_on] });
    await made.supervisor.hibernate();
    await expect(made.waking.requireAwake({ ...made.target, isLookedAt })).rejects.toMatchObject({
      code: "invalid_state",
      options: {
        details: { state: "hibernated", allowed_states: ["running"] },
        hint: expect.stringContaining("{{sandbox_resume "),
      },
    });
    expect([made.supervisor.row.state, made.events]).toEqual(["hibernated", []]);
  });

  test("receives the reason if its resume is refused, and so do all waiters", async () => {
    using made = await restingSandbox({});
    await made.supervisor.hibernate();
    made.given.refusal = new ServiceError("quota_exceeded");
    const { target } = made;
    const outcomes = await Promise.allSettled([made.waking.requireAwake(target), made.waking.requireAwake(target)]);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "quota_exceeded" } });
    expect([made.supervisor.row.state, made.events]).toEqual(["hibernated", []]);
    made.given.refusal = null;
    await made.waking.requireAwake(target);
    expect(made.supervisor.row.state).toBe("running");
  });

  test("waits no longer than the limit of a start", async () => {
    using made = await restingSandbox({}, 50);
    await made.supervisor.hibernate();
    const slow = Promise.withResolvers<void>();
    made.given.before = () => slow.promise;
    const { target } = made;
    await expect(made.waking.requireAwake(target)).rejects.toMatchObject({
      code: "guest_unreachable",
      message: expect.stringMatching(/ resuming.* 0\.05 s\.$/),
    });
    slow.resolve();
    await made.reached("running");
    await made.waking.requireAwake(made.target);
  });

  test("fails if it is destroyed during the wait", async () => {
    using made = await restingSandbox({});
    await made.supervisor.hibernate();
    const slow = Promise.withResolvers<void>();
    made.given.before = () => slow.promise;
    const woken = made.waking.requireAwake(made.target);
    await made.reached("resuming");
    const destroyed = made.supervisor.destroy("user_requested");
    slow.resolve();
    await expect(woken).rejects.toMatchObject({ code: "invalid_state" });
    await destroyed;
  });

  test("keeps it awake for another idle time", async () => {
    using clock = new MovedClock();
    using made = await restingSandbox({ idle_timeout_seconds: 1 }, undefined, clock);
    await made.reached("hibernated");
    await made.waking.requireAwake(made.target);
    const woken = performance.now();
    await made.reached("hibernated");
    expect(performance.now() - woken).toBeGreaterThan(IDLE_MS - 2);
  });
});

describe("a message", () => {
  test("wakes it, and its sender does not wait", async () => {
    using made = await restingSandbox({});
    await made.supervisor.hibernate();
    expect(made.waking.message(made.id)).toBeUndefined();
    expect(made.supervisor.row.state).toBe("hibernated");
    await made.reached("running");
    await until("the resume is recorded", () => made.events.length > 0);
    expect(made.events).toEqual(["sandbox.resume message success"]);
  });

  test.each([
    ["if messages are not in its list", { wake_on: ["api" as const] }],
    ["if its agent cannot read it", { fabric_attached: false }],
  ])("wakes no sandbox %s", async (_, change) => {
    using made = await restingSandbox(change);
    await made.supervisor.hibernate();
    made.waking.message(made.id);
    await Bun.sleep(50);
    expect(made.supervisor.row.state).toBe("hibernated");
  });

  test("wakes no sandbox while its room is restored to a checkpoint, since a resume would fail", async () => {
    using made = await restingSandbox({});
    await made.supervisor.hibernate();
    made.given.isTurning = true;
    made.waking.message(made.id);
    await Bun.sleep(50);
    expect([made.supervisor.row.state, restores(made)]).toEqual(["hibernated", 0]);
  });

  test("keeps a running sandbox awake", async () => {
    using clock = new MovedClock();
    using made = await restingSandbox({ idle_timeout_seconds: 2 }, undefined, clock);
    for (let sent = 0; sent < 6; sent++) {
      clock.pass(IDLE_MS);
      made.waking.message(made.id);
    }
    expect([made.supervisor.row.state, made.pretended.told]).toEqual(["running", []]);
    await made.reached("hibernated");
  });

  test("wakes a sandbox that is about to sleep", async () => {
    using made = await restingSandbox({});
    const rests = made.supervisor.hibernate();
    // It still shows that it runs.
    expect(made.supervisor.row.state).toBe("running");
    made.waking.message(made.id);
    await rests;
    await made.reached("running");
    expect(restores(made)).toBe(1);
  });

  test("that cannot wake it is retried until it can, and is reported a few times", async () => {
    using made = await restingSandbox({});
    await made.supervisor.hibernate();
    made.given.refusal = new ServiceError("insufficient_capacity");
    let tries = 0;
    const { refusal } = made.given;
    Object.defineProperty(made.given, "refusal", { get: () => (tries++ < 6 ? refusal : null) });
    made.waking.message(made.id);
    // Another message starts no second series of retries.
    made.waking.message(made.id);
    await made.reached("running");
    await until("the resume is recorded", () => made.events.length === 4);
    expect(made.events).toEqual([
      ...Array(3).fill("sandbox.resume message error insufficient_capacity"),
      "sandbox.resume message success",
    ]);
    expect(made.warnings).toHaveLength(3);
  });

  test("is not retried once another cause has woken it", async () => {
    using made = await restingSandbox({});
    await made.supervisor.hibernate();
    made.given.refusal = new ServiceError("insufficient_capacity");
    made.waking.message(made.id);
    await until("the attempt is recorded", () => made.events.length === 1);
    made.given.refusal = null;
    await made.supervisor.resume();
    await made.supervisor.hibernate();
    await Bun.sleep(100);
    expect([made.supervisor.row.state, made.events.length]).toEqual(["hibernated", 1]);
  });
});

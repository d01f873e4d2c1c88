/** PATCH of a sandbox's end, and hibernation from standby. */
import { expect, test } from "vitest";
import type { Bound } from "../../../../../daemon/core/call/operation.ts";
import { makeHibernate } from "../../../../../daemon/domain/sandboxes/calls/hibernate.ts";
import { makeUpdate } from "../../../../../daemon/domain/sandboxes/calls/update.ts";
import { restingSandbox } from "../resting-fixture.ts";

const ask = async (verb: Bound, input: object, target: object) =>
  (await verb.run({ audit: {} } as never, input as never, target as never, {} as never)) as { body: object };
const fieldsOf = async (verb: Bound, input: object) =>
  (await verb.rules(input, {}, [])).map(({ field, code }) => [field, code]);

test("expires_in_seconds counts from now, and copies of the sandbox inherit the full duration", async () => {
  using made = await restingSandbox({ created_at: new Date(Date.now() - 100_000).toISOString() });
  const update = makeUpdate(made.deps, made.supervisors);
  const before = Date.now();
  await ask(update, { expires_in_seconds: 60 }, made.target);
  const { expires_at, max_duration_seconds } = made.supervisor.row;
  expect(Date.parse(String(expires_at)) - before).toBeGreaterThanOrEqual(60_000);
  expect(Date.parse(String(expires_at)) - before).toBeLessThan(70_000);
  expect(max_duration_seconds).toBeGreaterThanOrEqual(160);
  await ask(update, { labels: {} }, made.target);
  expect(made.supervisor.row.expires_at).toBe(expires_at);
  await ask(update, { expires_in_seconds: null }, made.target);
  expect(made.supervisor.row).toMatchObject({ expires_at: null, max_duration_seconds: null });
});

test("two ends in one call are rejected", async () => {
  using made = await restingSandbox({});
  const update = makeUpdate(made.deps, made.supervisors);
  expect(await fieldsOf(update, { expires_in_seconds: 1, max_duration_seconds: 1 })).toEqual([
    ["expires_in_seconds", "conflicting_fields"],
  ]);
  expect(await fieldsOf(update, { expires_in_seconds: 1 })).toEqual([]);
});

test("a sandbox in standby hibernates: it is resumed and saved", async () => {
  using made = await restingSandbox({ idle_timeout_seconds: null });
  await made.supervisor.standby();
  const { body } = await ask(makeHibernate(made.deps, made.supervisors), {}, made.target);
  expect(body).toMatchObject({ state: "hibernated", status: { reason: "hibernated" } });
  expect(made.pretended.told).toContain("save");
});

test("if the save fails, it is in standby as before", async () => {
  using made = await restingSandbox({ idle_timeout_seconds: null });
  Object.assign(made.supervisor.guest ?? {}, { save: () => Promise.reject(new Error("it is too large")) });
  await made.supervisor.standby();
  const hibernated = ask(makeHibernate(made.deps, made.supervisors), {}, made.target);
  await expect(hibernated).rejects.toMatchObject({ code: "guest_unreachable" });
  expect(made.supervisor.row.state).toBe("paused");
});

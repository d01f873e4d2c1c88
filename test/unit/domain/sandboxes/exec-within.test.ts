/** sandbox_exec with wait_ms: its answer while the command runs and after its end, its records, and time limits on the way to the agent. */
import { expect, test } from "vitest";
import { NO_TIMEOUT_MS } from "../../../../shared/agent-protocol/messages.ts";
import { until } from "../../../harness/guests.ts";
import { sayFollowing, sendPiece, stateOf } from "../executions/agent-fixture.ts";
import { ExecutionsFixture } from "./executions-fixture.ts";

const over = (exec_id: string, more = {}) =>
  stateOf(exec_id, { state: "exited", exit_code: 3, finished_at_ms: 5, ...more });

/** An agent that starts every command, prints "so far" and ends it when `end` resolves. */
function serve(fixture: ExecutionsFixture, end: Promise<unknown>, note = "") {
  fixture.guest.answer = async (stream, { method, exec_id }) => {
    if (method === "exec_start") return stream.finish({ execution: stateOf(exec_id), existing: false });
    if (method === "exec_get") return stream.finish({ execution: over(exec_id, { note }) });
    sayFollowing(stream, exec_id);
    await sendPiece(stream, 1, "so far");
    await end;
    if (!stream.ended) stream.finish({ execution: over(exec_id, { note }) });
  };
}

test("a command that outlasts the wait is reported as running, with its output so far, and keeps running", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  const end = Promise.withResolvers<void>();
  serve(fixture, end.promise);
  const { call, body } = await fixture.run("sandbox_exec", { argv: ["make"], exec_id: "mine", wait_ms: 50 });
  expect(body).toMatchObject({
    ...{ exec_id: "mine", state: "running", exit_code: null, finished_at: null },
    ...{ stdout: "so far", stdout_bytes: 6, last_seq: 1, output: null },
  });
  // The call's own record is of the start; the end is recorded when the guest reports it.
  expect(call.audit).toMatchObject({ event: "exec.started", details: { exec_id: "mine", existing: false } });
  expect([fixture.running, fixture.uses, fixture.metered]).toEqual([1, 0, 1]);
  end.resolve();
  fixture.tell([over("mine")]);
  await until("the execution's end is recorded", async () => fixture.records.length === 1);
  expect(fixture.records[0]).toMatchObject({ event: "exec.finished", details: { exec_id: "mine", exit_code: 3 } });
  expect([fixture.running, fixture.metered]).toEqual([0, 1]);
});

test("a command that ends within the wait is reported with its outcome", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  serve(fixture, Promise.resolve());
  const { body } = await fixture.run("sandbox_exec", { argv: ["make"], wait_ms: 60_000 });
  expect(body).toMatchObject({ state: "exited", exit_code: 3, stdout: "so far" });
  expect(body).not.toHaveProperty("last_seq");
  expect(fixture.agent.asked.find(({ method }) => method === "exec_start")).toMatchObject({ generated: false });
});

test("the wait includes saving the output", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  const saved = (name: string) => ({ path: `/out/${name}`, size_bytes: 1, sha256: "00" });
  serve(fixture, Promise.resolve(), JSON.stringify({ stdout: saved("stdout"), stderr: saved("stderr") }));
  const { body } = await fixture.run("sandbox_exec", { argv: ["make"], wait_ms: 60_000, output_to: "/out" });
  expect(body).toMatchObject({ state: "exited", output: { path: "/out", state: "saved" } });
});

test("a disconnected client ends the wait", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  serve(fixture, new Promise(() => {}));
  const controller = new AbortController();
  const call = fixture.run("sandbox_exec", { argv: ["make"], wait_ms: 600_000 }, { signal: controller.signal });
  await until("the execution is followed", async () =>
    fixture.agent.asked.some(({ method }) => method === "exec_follow"),
  );
  controller.abort();
  expect((await call).body).toMatchObject({ state: "running" });
});

test.each([
  ["sandbox_exec", {}, { timeout_ms: 600_000, unlimited: false }],
  ["sandbox_exec", { timeout_ms: 604_800_000 }, { timeout_ms: 604_800_000, unlimited: false }],
  ["sandbox_exec", { timeout_ms: 0 }, { timeout_ms: NO_TIMEOUT_MS, unlimited: true }],
  ["execution_start", {}, { timeout_ms: NO_TIMEOUT_MS, unlimited: true }],
  ["execution_start", { timeout_ms: 5 }, { timeout_ms: 5, unlimited: false }],
] as const)("%s with %j has the time limit %j", async (name, limits, expected) => {
  using fixture = new ExecutionsFixture();
  fixture.guest.answer = (stream, { exec_id }) => stream.finish({ execution: over(exec_id), existing: false });
  await fixture.run(name, { argv: ["true"], ...limits });
  expect(fixture.agent.asked.find(({ method }) => method === "exec_start")).toMatchObject(expected);
});

test("a record without a time limit has null, for any number in the guest", async () => {
  using fixture = new ExecutionsFixture();
  fixture.guest.answer = (stream, { exec_id }) =>
    stream.finish({ execution: stateOf(exec_id, { timeout_ms: NO_TIMEOUT_MS }), existing: false });
  const { body } = await fixture.run("execution_start", { argv: ["sleep", "1"] });
  expect(body).toMatchObject({ state: "running", timeout_ms: null });
});

test("a sandbox is not in use while the client of a long command is disconnected", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  const end = Promise.withResolvers<void>();
  fixture.guest.answer = async (stream, { exec_id }) => {
    sayFollowing(stream, exec_id);
    await end.promise;
    stream.finish({ execution: over(exec_id), existing: false });
  };
  const controller = new AbortController();
  const call = fixture.run("sandbox_exec", { argv: ["make"] }, { signal: controller.signal });
  await until("the execution is running", async () => fixture.agent.asked.length > 0 && fixture.uses === 1);
  controller.abort();
  await until("the guest is not in use", async () => fixture.uses === 0);
  expect(fixture.ends.hasAny("sbx_1")).toBe(true);
  end.resolve();
  expect((await call).body).toMatchObject({ state: "exited", exit_code: 3 });
});

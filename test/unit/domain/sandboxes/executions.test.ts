/** Calls about executions, with an agent that observes no limit and sends arbitrary reports. */
import { describe, expect, test } from "vitest";
import { type StartedWork, UnkeptEffects } from "../../../../daemon/core/call/call-effects.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { MAX_LIVE_EXECUTIONS, MAX_STDIN_BYTES, MAX_WAITING_STDIN_BYTES } from "../../../../shared/api/executions.ts";
import { until } from "../../../harness/guests.ts";
import { sayFollowing, stateOf } from "../executions/agent-fixture.ts";
import { ExecutionsFixture } from "./executions-fixture.ts";

const ended = (exec_id: string, more = {}) =>
  stateOf(exec_id, { state: "exited", exit_code: 3, finished_at_ms: 5, argv: ["told", "by", "the", "guest"], ...more });
const refusal = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error: ServiceError) => error.code,
  );

/** Makes calls with endless work, until one is refused; returns the number of the others. */
async function admitted(call: () => Promise<unknown>, most: number): Promise<number> {
  for (let count = 0; count <= most; count++) {
    const refused = await Promise.race([refusal(call()), new Promise((resolve) => setTimeout(resolve, 5, "waits"))]);
    if (refused === "too_many_executions") return count;
    expect(refused).toBe("waits");
  }
  return Number.POSITIVE_INFINITY;
}

test("concurrent commands are limited per sandbox, even if its agent admits more", async () => {
  using fixture = new ExecutionsFixture();
  fixture.guest.answer = (stream, { exec_id }) => sayFollowing(stream, exec_id);
  const exec = () => fixture.run("sandbox_exec", { argv: ["true"] });
  expect(await admitted(exec, MAX_LIVE_EXECUTIONS)).toBe(MAX_LIVE_EXECUTIONS);
  expect(fixture.agent.asked.filter(({ method }) => method === "exec_start")).toHaveLength(MAX_LIVE_EXECUTIONS);
});

test("a slot is free again once its command has ended", async () => {
  using fixture = new ExecutionsFixture();
  fixture.guest.answer = (stream, { exec_id }) => {
    sayFollowing(stream, exec_id);
    stream.finish({ execution: ended(exec_id) });
  };
  for (let count = 0; count < MAX_LIVE_EXECUTIONS * 2; count++) {
    expect((await fixture.run("sandbox_exec", { argv: ["true"], stdin: "x" })).body.exit_code).toBe(3);
  }
});

test("unread standard input is limited, by its bytes and by its calls", async () => {
  using fixture = new ExecutionsFixture();
  const data_b64 = Buffer.alloc(MAX_STDIN_BYTES).toString("base64");
  const controller = new AbortController();
  const ends: Promise<unknown>[] = [];
  const large = () => {
    const call = fixture.run("execution_stdin", { exec_id: "x", data_b64 }, { signal: controller.signal });
    ends.push(call.catch(() => {}));
    return call;
  };
  expect(await admitted(large, 64)).toBe(MAX_WAITING_STDIN_BYTES / MAX_STDIN_BYTES);
  expect(await refusal(fixture.run("sandbox_exec", { argv: ["cat"], stdin: "x" }))).toBe("too_many_executions");
  controller.abort();
  await Promise.all(ends);
  expect(fixture.agent.open).toBe(0);
  const small = () => fixture.run("execution_stdin", { exec_id: "x", data_b64: "eA==" });
  expect(await admitted(small, 100)).toBe(MAX_LIVE_EXECUTIONS);
});

test.each<[string, Record<string, unknown>]>([
  ["execution_signal", { exec_id: "x", signal: "SIGUSR1" }],
  ["execution_stdin", { exec_id: "x", data_b64: "eA==" }],
])("%s reaches a command once per Idempotency-Key, even if its reply was lost", async (name, input) => {
  using fixture = new ExecutionsFixture();
  const events: string[] = [];
  fixture.guest.answer = (stream, { method }) => {
    events.push(method);
    stream.fail("not_now", "the answer is lost");
  };
  const recorded: StartedWork[] = [];
  const work = (started?: StartedWork) =>
    Object.assign(new UnkeptEffects(), {
      begun: started,
      noteFirst: async (note: StartedWork) => {
        events.push("noted");
        recorded.push(note);
      },
    });
  await refusal(fixture.run(name, input, { work: work() }));
  expect(events).toEqual(["noted", expect.stringMatching(/^exec_/)]);
  expect(await refusal(fixture.run(name, input, { work: work(recorded[0]) }))).toBe("history_gone");
  expect(events).toHaveLength(2);
});

test("a name whose command failed to start is free: its next command is recorded and its output saved", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  fixture.guest.answer = (stream) => stream.fail("cwd_not_found", "no such directory");
  const input = { exec_id: "again", argv: ["true"] };
  expect(await refusal(fixture.run("sandbox_exec", { ...input, cwd: "/nowhere" }))).toBe("cwd_not_found");
  fixture.guest.answer = (stream, { method, exec_id }) => {
    const execution = stateOf(exec_id, { tag: JSON.stringify({ output_to: "/out" }) });
    if (method === "exec_start") stream.finish({ execution, existing: false });
    else sayFollowing(stream, exec_id);
  };
  await fixture.run("execution_start", { ...input, output_to: "/out" });
  await until("the output is being saved", async () => fixture.saved.length === 1);
  expect([fixture.running, fixture.uses]).toEqual([1, 0]);
  fixture.tell([ended("again")]);
  await until("the execution's end is recorded", async () => fixture.records.length === 1);
  expect(fixture.running).toBe(0);
});

test("an execution is metered once, with its first record, for any number and kind of calls", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  fixture.guest.answer = (stream, { method, exec_id, follow }) => {
    if (method !== "exec_start" || !follow) return stream.finish({ execution: stateOf(exec_id), existing: false });
    sayFollowing(stream, exec_id);
    stream.finish({ execution: ended(exec_id) });
  };
  for (const exec_id of ["one", "two", undefined, undefined]) {
    await fixture.run("sandbox_exec", { argv: ["true"], ...(exec_id === undefined ? {} : { exec_id }) });
  }
  expect(fixture.metered).toBe(4);
  // Left running: metered when it starts, and not again at its end.
  await fixture.run("execution_start", { exec_id: "three", argv: ["true"] });
  fixture.tell([ended("three")]);
  await until("the execution's end is recorded", async () => fixture.records.length === 1);
  expect(fixture.metered).toBe(5);
  // Started by a daemon that was killed before it could record it.
  fixture.restart();
  await fixture.recordStart("before", ["true"]);
  fixture.guest.listed = [ended("lost", { number: 1 }), stateOf("before", { number: 2 })];
  fixture.ends.watch("sbx_1");
  fixture.tell([ended("lost"), ended("before")]);
  await until("both ends are recorded", async () => fixture.records.length === 4);
  expect(fixture.metered).toBe(6);
});

/** Keeps the streams of followers open: their execution ends when the test finishes their stream. */
function leaveOpen({ guest }: ExecutionsFixture) {
  const streams: Parameters<typeof guest.answer>[0][] = [];
  guest.answer = (stream, { exec_id }) => {
    sayFollowing(stream, exec_id);
    streams.push(stream);
  };
  return streams;
}

test("a call for an awaited execution, or for one that has ended and is recorded, meters nothing", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  const streams = leaveOpen(fixture);
  const exec = () => fixture.run("sandbox_exec", { exec_id: "same", argv: ["true"] });
  const calls = [exec(), exec()];
  await until("both calls follow the execution", async () => streams.length === 2);
  for (const stream of streams) stream.finish({ execution: ended("same") });
  await Promise.all(calls);
  expect(fixture.metered).toBe(1);
  await fixture.recordEnd("same");
  fixture.guest.answer = (stream, { exec_id }) => {
    sayFollowing(stream, exec_id, { state: "exited" });
    stream.finish({ execution: ended(exec_id) });
  };
  await exec();
  expect(fixture.metered).toBe(1);
});

test("an execution reported only at its end is looked up in the audit, unless this call started it", async () => {
  using fixture = new ExecutionsFixture();
  await fixture.recordEnd("same");
  const metered = [];
  for (const reply of [{ existing: true }, {}, { existing: false }]) {
    fixture.guest.answer = (stream, { exec_id }) => stream.finish({ execution: ended(exec_id), ...reply });
    await fixture.run("sandbox_exec", { exec_id: "same", argv: ["true"] });
    metered.push(fixture.metered);
  }
  expect(metered).toEqual([0, 0, 1]);
});

test("an execution is metered although a later call has recorded it first", async () => {
  using fixture = new ExecutionsFixture();
  fixture.guest.answer = (stream, { exec_id }) => {
    const later = fixture.recordEnd("same", new Date(Date.now() + 60_000));
    void later.then(() => stream.finish({ execution: ended(exec_id), existing: true }));
  };
  await fixture.run("sandbox_exec", { exec_id: "same", argv: ["true"] });
  expect(fixture.metered).toBe(1);
});

test("an execution found running after a restart and awaited by a retry is metered once", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  const streams = leaveOpen(fixture);
  const again = fixture.run("sandbox_exec", { exec_id: "again", argv: ["true"] });
  await until("the execution is followed", async () => streams.length === 1);
  fixture.ends.begun(fixture.row, stateOf("again"), null);
  streams[0]?.finish({ execution: ended("again") });
  await again;
  fixture.tell([ended("again")]);
  await until("the execution's end is recorded", async () => fixture.records.length === 1);
  expect(fixture.metered).toBe(1);
});

test("and so is one whose start is unknown", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  const { leave } = fixture.ends.attend(fixture.row, "again", { actor: { type: "key", id: "one", name: "" } } as never);
  leave({ began: true, recorded: false });
  fixture.guest.answer = (stream, { exec_id }) => stream.finish({ execution: stateOf(exec_id), existing: false });
  await fixture.run("execution_start", { exec_id: "again", argv: ["true"] });
  expect([fixture.running, fixture.uses]).toEqual([1, 0]);
  fixture.tell([ended("again")]);
  await until("the execution's end is recorded", async () => fixture.records.length === 1);
  expect(fixture.records[0]).toMatchObject({ actor_id: "kid_1", details: { argv: ["true"] } });
});

describe("a command whose call has lost its key", () => {
  const finished = (fixture: ExecutionsFixture, outcome: string) =>
    fixture.records.filter((record) => record.event === "exec.finished" && record.outcome === outcome);

  test("during its run is recorded and metered at its end, once", async () => {
    using fixture = new ExecutionsFixture();
    fixture.ends.watch("sbx_1");
    const streams = leaveOpen(fixture);
    const call = fixture.walk("sandbox_exec", { exec_id: "mine", argv: ["true"] });
    await until("the execution is followed", async () => streams.length === 1);
    fixture.cutKey();
    expect((await call).status).toBe(401);
    streams[0]?.finish({ execution: ended("mine") });
    fixture.tell([ended("mine")]);
    await until("the execution is settled", async () => fixture.settled.includes("mine"));
    expect([finished(fixture, "success").length, fixture.metered]).toEqual([1, 1]);
    expect(finished(fixture, "success")[0]).toMatchObject({
      actor_id: "kid_1",
      details: { exec_id: "mine", exit_code: 3 },
    });
  });

  test.each(["sandbox_exec", "execution_start"])(
    "before its guest was called is recorded and metered too, by %s",
    async (name) => {
      using fixture = new ExecutionsFixture();
      fixture.guest.answer = (stream, { exec_id }) =>
        name === "sandbox_exec"
          ? sayFollowing(stream, exec_id)
          : stream.finish({ execution: stateOf(exec_id), existing: false });
      const link = Promise.withResolvers<void>();
      fixture.linked = link.promise;
      const call = fixture.walk(name, { exec_id: "mine", argv: ["true"] });
      fixture.ends.watch("sbx_1");
      await until("the guest is in use", async () => fixture.uses === 1);
      fixture.cutKey();
      expect((await call).status).toBe(401);
      link.resolve();
      await until("exec_start is requested", async () =>
        fixture.agent.asked.some(({ method }) => method === "exec_start"),
      );
      fixture.tell([ended("mine")]);
      await until("the execution is settled", async () => fixture.settled.includes("mine"));
      expect([finished(fixture, "success").length, fixture.metered]).toEqual([1, 1]);
    },
  );

  test("and that failed to start is forgotten", async () => {
    using fixture = new ExecutionsFixture();
    fixture.ends.watch("sbx_1");
    fixture.guest.answer = (stream) => stream.fail("cwd_not_found", "no such directory");
    const link = Promise.withResolvers<void>();
    fixture.linked = link.promise;
    const call = fixture.walk("sandbox_exec", { exec_id: "mine", argv: ["true"], cwd: "/nowhere" });
    await until("the guest is in use", async () => fixture.uses === 1);
    fixture.cutKey();
    expect((await call).status).toBe(401);
    link.resolve();
    await until("the guest is not in use", async () => fixture.uses === 0);
    fixture.tell([ended("mine")]);
    await until("the execution is settled", async () => fixture.settled.includes("mine"));
    expect([finished(fixture, "success").length, fixture.metered]).toEqual([0, 0]);
  });

  test("at its end, while its record was being written, is recorded and metered once", async () => {
    using fixture = new ExecutionsFixture();
    fixture.ends.watch("sbx_1");
    const streams = leaveOpen(fixture);
    const call = fixture.walk("sandbox_exec", { exec_id: "mine", argv: ["true"] });
    await until("the execution is followed", async () => streams.length === 1);
    const record = fixture.holdCommit();
    fixture.cutKey();
    await record.written;
    streams[0]?.finish({ execution: ended("mine") });
    await until("the guest is not in use", async () => fixture.uses === 0);
    record.goOn();
    expect((await call).status).toBe(401);
    fixture.tell([ended("mine")]);
    await until("the execution is settled", async () => fixture.settled.includes("mine"));
    expect([finished(fixture, "success").length, fixture.metered]).toEqual([1, 1]);
  });
});

test("the guest determines only the outcome: the record has the caller and the command", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  fixture.guest.answer = (stream, { exec_id }) => stream.finish({ execution: stateOf(exec_id), existing: false });
  await fixture.run("execution_start", { exec_id: "mine", argv: ["make", "--token", "x"] });
  fixture.tell([ended("mine"), ended("never-begun")]);
  await until("both executions are settled", async () => fixture.settled.length === 2);
  expect(fixture.records).toHaveLength(1);
  expect(fixture.records[0]).toMatchObject({
    event: "exec.finished",
    actor_id: "kid_1",
    details: { exec_id: "mine", argv: ["make", "--token", "***"], exit_code: 3 },
  });
});

test("after a restart, a guest's running commands and concurrent saves stay within the limits", async () => {
  using fixture = new ExecutionsFixture();
  fixture.guest.answer = (stream, { exec_id }) => sayFollowing(stream, exec_id);
  const tag = JSON.stringify({ output_to: "/out" });
  const [running, over] = [300, 300];
  fixture.guest.listed = [
    ...Array.from({ length: running }, (_, at) => stateOf(`r-${at}`, { number: at + 1, tag })),
    ...Array.from({ length: over }, (_, at) => ended(`e-${at}`, { number: running + at + 1, tag })),
    ended("exec 4711", { number: 601 }),
  ];
  fixture.ends.watch("sbx_1");
  await until("MAX_LIVE_EXECUTIONS outputs are being saved", async () => fixture.saved.length >= MAX_LIVE_EXECUTIONS);
  fixture.tell([ended("exec 4711")]);
  await until("the ended execution is settled", async () => fixture.settled.length === 1);
  expect([fixture.saved.length, fixture.running]).toEqual([MAX_LIVE_EXECUTIONS, MAX_LIVE_EXECUTIONS]);
  expect(fixture.records).toEqual([]);
});

test("ends recorded by an earlier daemon are not recorded again, and its starts are read from the audit", async () => {
  using fixture = new ExecutionsFixture();
  await fixture.recordStart("begun", ["sleep", "9"]);
  await fixture.recordStart("over", ["true"]);
  fixture.guest.listed = [ended("over", { number: 1, started_at_ms: Date.now() + 1e9 }), ended("lost", { number: 3 })];
  fixture.guest.listed.push(stateOf("begun", { number: 4 }));
  fixture.ends.watch("sbx_1");
  fixture.tell([ended("over"), ended("lost"), ended("begun")]);
  await until("all executions are settled", async () => fixture.settled.length === 3);
  const finished = () => fixture.records.filter(({ event }) => event === "exec.finished");
  expect(
    finished().map(({ actor_id, details }) => [actor_id, details.exec_id, details.argv, details.told_argv]),
  ).toEqual([
    ["kid_before", "over", ["true"], undefined],
    ["executions", "lost", undefined, ["told", "by", "the", "guest"]],
    ["kid_before", "begun", ["sleep", "9"], undefined],
  ]);
  fixture.restart();
  fixture.ends.watch("sbx_1");
  fixture.tell([ended("over"), ended("lost"), ended("begun")]);
  await until("all executions are settled again", async () => fixture.settled.length === 6);
  expect(finished()).toHaveLength(3);
});

test("a command that ran returns its outcome although its output could not be saved", async () => {
  using fixture = new ExecutionsFixture();
  fixture.unsaved = new ServiceError("path_escapes_drive");
  fixture.guest.answer = (stream, { exec_id }) => {
    sayFollowing(stream, exec_id);
    stream.finish({ execution: ended(exec_id) });
  };
  const { body, call } = await fixture.run("sandbox_exec", { argv: ["true"], output_to: "/out" });
  expect(body).toMatchObject({
    exit_code: 3,
    output: { path: "/out", state: "failed", stdout: null, stderr: null, error_code: "path_escapes_drive" },
  });
  expect(call.audit.details).toMatchObject({ exit_code: 3, not_saved: "path_escapes_drive" });
});

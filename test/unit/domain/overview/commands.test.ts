/** Commands as a timeline has them: while they run, and by the records that real calls leave, with a guest that the test plays. */
import { expect, test } from "vitest";
import { goingIn } from "../../../../daemon/domain/sandboxes/running-work.ts";
import type { AuditRecord } from "../../../../shared/api/audit.ts";
import { toItem } from "../../../../shared/timeline/to-item.ts";
import { until } from "../../../harness/guests.ts";
import { sayFollowing, stateOf } from "../executions/agent-fixture.ts";
import { ExecutionsFixture } from "../sandboxes/executions-fixture.ts";

const going = (fixture: ExecutionsFixture) => goingIn([fixture.row], fixture.ends);
const items = (fixture: ExecutionsFixture) =>
  fixture.records.flatMap((record) => toItem(record as unknown as AuditRecord) ?? []);

test("an awaited command is running until its reply, and is a span from its start", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  const running = Promise.withResolvers<() => void>();
  fixture.guest.answer = (stream, { exec_id }) => {
    sayFollowing(stream, exec_id);
    const execution = stateOf(exec_id, { state: "exited", exit_code: 3, finished_at_ms: 5 });
    running.resolve(() => stream.finish({ execution }));
  };
  const before = Date.now();
  const answered = fixture.walk("sandbox_exec", { command: "make --token=abc", exec_id: "build" });
  const end = await running.promise;
  expect(going(fixture)).toEqual({
    commands: [
      {
        ...{ agent_id: "a", exec_id: "build", argv: ["/bin/sh", "-c", "make --token=***"] },
        ...{ since: expect.any(String), trace_id: null },
      },
    ],
    standby: [],
  });
  end();
  expect((await answered).status).toBe(200);
  expect(going(fixture).commands).toEqual([]);
  const [item] = items(fixture);
  expect(item).toMatchObject({
    type: "command",
    kind: "span",
    agent_id: "a",
    title: "make --token=***",
    ref: { type: "execution", id: "build" },
    exit_code: 3,
    outcome: "success",
  });
  expect(Date.parse(String(item?.at))).toBeGreaterThanOrEqual(before);
  expect(String(item?.at) <= String(item?.until)).toBe(true);
});

test("a background command is running until its guest reports its end, also for the next daemon", async () => {
  using fixture = new ExecutionsFixture();
  fixture.ends.watch("sbx_1");
  fixture.guest.answer = (stream, { exec_id }) => stream.finish({ execution: stateOf(exec_id), existing: false });
  expect((await fixture.walk("execution_start", { argv: ["make", "all"], exec_id: "build" })).status).toBe(201);
  const [running] = going(fixture).commands;
  expect(running).toMatchObject({ exec_id: "build", argv: ["make", "all"] });
  const [started] = items(fixture);
  expect(started).toMatchObject({ kind: "mark", title: "started make all" });
  fixture.guest.listed = [stateOf("build", { number: 1 })];
  fixture.restart();
  fixture.ends.watch("sbx_1");
  await until("the command is found again", async () => going(fixture).commands.length === 1);
  expect(going(fixture).commands).toEqual([{ ...running, since: started?.at }]);
  const at = Date.now() - 60_000;
  fixture.tell([stateOf("build", { state: "exited", exit_code: 0, started_at_ms: at, finished_at_ms: at + 60_000 })]);
  await until("the command's end is recorded", async () => items(fixture).length === 2);
  const [, ended] = items(fixture);
  expect(ended).toMatchObject({ kind: "span", title: "make all", ref: started?.ref, exit_code: 0 });
  // Its record was written when it was over.
  expect(Date.parse(String(ended?.until)) - Date.parse(String(ended?.at))).toBe(60_000);
  expect(Math.abs(Date.parse(String(ended?.at)) - at)).toBeLessThan(5000);
  expect(going(fixture).commands).toEqual([]);
});

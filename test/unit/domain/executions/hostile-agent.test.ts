/** A guest agent that sends false reports about a command, or none: each caller gets an end, and the host's pace is not affected. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { beginFollowed, feedAll, outputOf } from "../../../../daemon/domain/sandboxes/executions/run/output.ts";
import { Backstop } from "../../../../daemon/domain/sandboxes/executions/run/patience.ts";
import { requestOf } from "../../../../daemon/domain/sandboxes/executions/run/request.ts";
import { runCommand } from "../../../../daemon/domain/sandboxes/executions/run/run.ts";
import { clockSkewMs } from "../../../../daemon/host/guest-link/clock.ts";
import { mountDrive } from "../../../../daemon/host/guest-link/drive.ts";
import { PRICE_PER_SECOND } from "../../../../daemon/host/guest-link/pace.ts";
import { Channel } from "../../../../shared/agent-protocol/messages.ts";
import { pieceOf } from "../../../protocol/wire.ts";
import { PlayedAgent, sayFollowing, sendPiece, stateOf } from "./agent-fixture.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const INPUT = { room_id: "r", sandbox: "a", argv: ["true"], exec_id: "exe_1", timeout_ms: 1000 };
const REQUEST = requestOf(INPUT, {});
const reachOf = (agent: PlayedAgent) => async () => agent.link;
const never = () => Promise.reject(new Error("nothing is saved here"));
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Advances the time in steps, so that pending work can run in between. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    for (let turns = 0; turns < 6; turns++) await turn();
    await vi.advanceTimersByTimeAsync(Math.min(left, 250));
  }
  for (let turns = 0; turns < 6; turns++) await turn();
}

test("an agent that reports a lost connection is not called again", async () => {
  const agent = new PlayedAgent((stream) => stream.fail("link_closed", "forged"));
  const outcome = beginFollowed(reachOf(agent), REQUEST).catch((error: unknown) => error);
  await pass(1000);
  expect(await outcome).toMatchObject({ code: "guest_unreachable", options: { details: { started: false } } });
  expect(agent.asked).toHaveLength(1);
});

test("an agent that does not reply is called a few times, and then given an error", async () => {
  const agent = new PlayedAgent(() => {});
  const outcome = beginFollowed(reachOf(agent), REQUEST).catch((error: unknown) => error);
  await pass(180_000);
  expect(await outcome).toMatchObject({ code: "guest_unreachable", options: { details: { started: "unknown" } } });
  expect(agent.asked).toHaveLength(8);
  expect(agent.open).toBe(0);
});

test("an agent that drops each connection gets standard input again only after pauses", async () => {
  const agent = new PlayedAgent(() => agent.drop());
  const over = new AbortController();
  const fed = feedAll(reachOf(agent), { ...REQUEST, stdin: Buffer.alloc(1024) }, over.signal);
  await pass(20_000);
  expect(agent.asked.length).toBeGreaterThan(3);
  expect(agent.asked.length).toBeLessThan(14);
  over.abort();
  await pass(1);
  await fed;
});

test("output resumes on a new connection, immediately if there was progress", async () => {
  const agent = new PlayedAgent((stream, { exec_id, after = 0 }) => {
    sayFollowing(stream, exec_id, { last_seq: after });
    void sendPiece(stream, after + 1, `${after + 1}\n`).then(() => {
      if (after < 4) setImmediate(() => agent.drop());
      else stream.finish({ execution: stateOf(exec_id, { state: "exited", exit_code: 0, finished_at_ms: 2 }) });
    });
  });
  const ran = runCommand(reachOf(agent), REQUEST, INPUT, never);
  await pass(2000);
  const body = await ran;
  expect(body).toMatchObject({ stdout: "1\n2\n3\n4\n5\n", exit_code: 0 });
});

test("a reply that ends before the command has started is an error", async () => {
  const agent = new PlayedAgent((stream) => stream.finish({ execution: stateOf("exe_1") }));
  const outcome = beginFollowed(reachOf(agent), REQUEST).catch((error: unknown) => error);
  await pass(1000);
  expect(await outcome).toMatchObject({ code: "guest_unreachable" });
  expect(agent.asked).toHaveLength(1);
});

test.each(["silent", "dribbling", "dropping", "dropping immediately"])(
  "a command whose end is never reported ends with an error: %s",
  async (how) => {
    const agent = new PlayedAgent((stream, { exec_id, after = 0 }) => {
      sayFollowing(stream, exec_id, { last_seq: after });
      if (how === "silent") return;
      if (how === "dropping immediately") return void setImmediate(() => agent.drop());
      const say = (seq: number) =>
        setTimeout(() => {
          void sendPiece(stream, seq, "x");
          if (how === "dropping") setImmediate(() => agent.drop());
          else say(seq + 1);
        }, 5000);
      say(after + 1);
    });
    const ran = runCommand(reachOf(agent), REQUEST, INPUT, never).catch((error: unknown) => error);
    let settled = false;
    void ran.finally(() => {
      settled = true;
    });
    await pass(60_000);
    expect(settled).toBe(false);
    await pass(100_000);
    expect(await ran).toMatchObject({ code: "guest_unreachable", options: { details: { started: true } } });
    expect(agent.open).toBe(0);
  },
);

test("the timeout does not run while the guest is paused", async () => {
  const agent = new PlayedAgent((stream, { exec_id }) => sayFollowing(stream, exec_id));
  const started = beginFollowed(reachOf(agent), REQUEST);
  await pass(250);
  const output = outputOf(reachOf(agent), await started, 0, { backstop: new Backstop(1000) });
  const next = output.next().catch((error: unknown) => error);
  let settled = false;
  void next.finally(() => {
    settled = true;
  });
  await pass(1000);
  agent.link.standstill.begin();
  await vi.advanceTimersByTimeAsync(3_600_000);
  agent.link.standstill.end();
  await pass(100_000);
  expect(settled).toBe(false);
  await pass(30_000);
  expect(await next).toMatchObject({ code: "guest_unreachable" });
});

test("output in single bytes is charged piece by piece", async () => {
  const pieces = 20_000;
  const agent = new PlayedAgent((stream, { exec_id }) => {
    sayFollowing(stream, exec_id);
    const all = Array.from({ length: pieces }, (_, at) =>
      pieceOf({ channel: 1, seq: at + 1, bytes: Buffer.from("x") }),
    );
    const state = stateOf(exec_id, { state: "exited", exit_code: 0, finished_at_ms: 2 });
    void stream.write(Channel.output, Buffer.concat(all)).then(() => stream.finish({ execution: state }));
  });
  const ran = runCommand(reachOf(agent), REQUEST, INPUT, never);
  await pass(1000);
  expect((await ran).stdout_bytes).toBe(pieces);
  // A guest that does nothing else would reach a few hundred thousand a second.
  expect((agent.charged / pieces) * 500_000).toBeGreaterThan(PRICE_PER_SECOND);
  expect((agent.charged / pieces) * 200_000).toBeLessThan(PRICE_PER_SECOND);
});

test("an aborted query leaves no stream open", async () => {
  const agent = new PlayedAgent(() => {});
  const outcomes = [clockSkewMs(agent.link), mountDrive(agent.link, { tag: "drive", mount_point: "/mnt/drive" })].map(
    (question) => question.catch(() => "given up"),
  );
  await pass(250);
  expect(agent.open).toBe(2);
  await pass(20_000);
  expect(await Promise.all(outcomes)).toEqual(["given up", "given up"]);
  expect(agent.open).toBe(0);
});

/** Limits of waits in the SDK for TypeScript: latency, turns, signals and sources. */
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  Agent,
  type CallOptions,
  type Client,
  Execution,
  ProblemError,
  Roomd,
} from "../../../sdk/typescript/src/index.ts";
import { ok, ScriptedService, stalled } from "./scripted-service.ts";

type Call = (name: string, input: Record<string, unknown>, options: CallOptions) => Promise<unknown>;

const agentOf = (call: Call) => Agent.of({ call } as unknown as Client, "a", "w");
const never = () => new Promise<never>(() => {});

afterEach(() => void vi.restoreAllMocks());

describe("an agent", () => {
  test.each([
    ["a message", (agent: Agent) => agent.wait({ timeoutMs: 1000 })],
    ["a reply", (agent: Agent) => agent.request("v", 1, { timeoutMs: 1000 })],
    ["the others", (agent: Agent) => agent.barrier("b", { timeoutMs: 1000 })],
  ])("waits for a response about %s no longer than its own limit plus latency", async (_, wait) => {
    const calls: CallOptions[] = [];
    const agent = agentOf(async (_name, _input, options) => {
      calls.push(options);
      return { items: [1], next_after: 1, reply: 1, state: "released" };
    });
    await wait(agent);
    expect(calls).toHaveLength(1);
    expect(calls[0]?.timeoutMs).toBeGreaterThan(10_000);
    expect(calls[0]?.timeoutMs).toBeLessThanOrEqual(11_000);
  });

  test("that comes after others has its own time and signal, and later ones still wait", async () => {
    let answer = (_: unknown) => {};
    const calls: unknown[] = [];
    const agent = agentOf((_, { after }) => {
      calls.push(after);
      return new Promise((resolve) => {
        answer = resolve;
      });
    });
    const first = agent.wait();
    const left = new AbortController();
    const second = agent.wait({ signal: left.signal });
    left.abort(new Error("gone"));
    await expect(second).rejects.toThrow("gone");
    expect(await agent.wait({ timeoutMs: 0 })).toBeNull();
    const last = agent.wait();
    expect(calls).toEqual([undefined]);
    answer({ items: ["one"], next_after: 1 });
    expect(await first).toBe("one");
    await vi.waitFor(() => expect(calls).toEqual([undefined, 1]));
    answer({ items: ["two"], next_after: 2 });
    expect(await last).toBe("two");
  });

  test("requests a reply in several calls, all within its time and each with whole milliseconds", async () => {
    let clock = 0;
    vi.spyOn(performance, "now").mockImplementation(() => clock);
    const calls: unknown[] = [];
    const agent = agentOf(async (_, { timeout_ms, message_id }, { idempotencyKey }) => {
      calls.push([timeout_ms, message_id, idempotencyKey]);
      clock += Number(timeout_ms);
      throw new ProblemError({ code: "reply_timeout", hint: null } as ProblemError["problem"]);
    });
    const options = { timeoutMs: 51_000.4, messageId: "m", idempotencyKey: "k" };
    await expect(agent.request("v", 1, options)).rejects.toMatchObject({ name: "TimeoutError" });
    expect(calls).toEqual([
      [50_000, "m", "k"],
      [1000, "m", undefined],
      [1, "m", undefined],
    ]);
  });
});

describe("an endless operation", () => {
  test("does not end its command if only its time limit has passed", async () => {
    const stream = stalled(200, { "Content-Type": "application/x-ndjson" }, '{"type":"ping"}\n');
    const service = await ScriptedService.start(({ path }) => (path.includes("/stream") ? stream : ok({})));
    const roomd = new Roomd({ url: service.url });
    const done = roomd.rooms.open("a").sandbox("w").exec("true", { waitMs: 200, killOnAbort: true });
    await expect(done).rejects.toMatchObject({ name: "TimeoutError" });
    roomd.close();
    service.stop();
    expect(service.asked.map(({ method }) => method)).not.toContain("DELETE");
  });

  test("is left immediately, even if a source produces no data", async () => {
    const calls: unknown[] = [];
    const client = {
      call: async (name: string, _: unknown, { timeoutMs }: CallOptions) => calls.push([name, timeoutMs]),
      events: (_: string, __: unknown, { signal }: CallOptions) =>
        (async function* () {
          yield* [];
          await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
        })(),
    } as unknown as Client;
    const source = { [Symbol.asyncIterator]: () => ({ next: never }) };
    const left = new AbortController();
    const fed = new Execution(client, { room_id: "a", sandbox: "w" }, "e").feed(source, { signal: left.signal });
    left.abort(new Error("gone"));
    await expect(fed).rejects.toThrow("gone");
    expect(calls).toEqual([
      ["execution_get", 10_000],
      ["execution_end", 10_000],
    ]);
  });
});

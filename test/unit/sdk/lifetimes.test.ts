/** Time limits of commands, lifetimes of sandboxes and rooms, and the result of a call for an existing sandbox. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ForkError, Roomd, Sandbox } from "../../../sdk/typescript/src/index.ts";
import { type Asked, lines, ok, problem, type Reply, ScriptedService } from "./scripted-service.ts";

let service: ScriptedService;
let answer: (request: Asked) => Reply;

const record = (more = {}) => ({
  ...{ room_id: "a", sandbox_id: "sbx_1", agent_id: "main", state: "running", status: { message: "" }, ...more },
});
const EXIT = { seq: 1, type: "exit", exit_code: 0, signal: null, timed_out: false, stdout_bytes: 0, stderr_bytes: 0 };
const calls = () => service.asked.map(({ method, path }) => `${method} ${path}`);
const body = (index: number): Record<string, unknown> => JSON.parse(service.asked.at(index)?.body || "{}");

beforeEach(async () => {
  answer = ({ path }) => (path.includes("/stream") ? lines(EXIT) : ok(record({ labels: {} })));
  service = await ScriptedService.start((request) => answer(request));
});
afterEach(() => service.stop());
const open = () => new Roomd({ url: service.url }).rooms.open("a").sandbox("main");

describe("the time limit of a command", () => {
  test.each([
    ["exec", {}, 600_000],
    ["exec", { timeoutMs: 5 }, 5],
    ["exec", { commandTimeoutMs: 5 }, 5],
    ["exec", { timeoutMs: 0 }, 0],
    ["exec", { timeoutMs: Number.POSITIVE_INFINITY }, 0],
    ["exec", { waitMs: 60_000 }, 600_000],
    ["start", {}, 0],
    ["start", { timeoutMs: 5 }, 5],
  ] as const)("%s with %j is %d", async (verb, options, timeout_ms) => {
    await open()[verb]("true", options);
    expect(body(0)).toMatchObject({ command: "true", timeout_ms });
  });
});

describe("a sandbox with a room to itself", () => {
  const create = (options = {}) => Sandbox.create({ url: service.url, ...options });

  test("hibernates after 15 idle minutes, and its room ends after a day", async () => {
    const sandbox = await create({ labels: { team: "a" } });
    expect(body(0)).toMatchObject({ ttl_seconds: 86_400, labels: { team: "a" } });
    expect(body(1)).toMatchObject({
      labels: { team: "a" },
      lifecycle: { idle_after_seconds: 900, on_idle: "hibernate" },
    });
    expect([sandbox.sandboxId, sandbox.state]).toEqual(["sbx_1", "running"]);
  });

  test.each([
    [{ ttlSeconds: 60, idleTimeoutSeconds: 5 }, { ttl_seconds: 60 }, { idle_timeout_seconds: 5 }],
    [{ ttlSeconds: null, lifecycle: {} }, {}, { lifecycle: {} }],
    [{ maxDurationSeconds: 100_000 }, { ttl_seconds: 103_600 }, { max_duration_seconds: 100_000 }],
  ])("with %j is created accordingly", async (options, room, sandbox) => {
    await create(options);
    const { ttl_seconds } = body(0);
    expect(ttl_seconds === undefined ? {} : { ttl_seconds }).toEqual(room);
    expect(body(1)).toMatchObject(sandbox);
  });

  test.each([
    [{}, "delete"],
    [{ keep: true }, "retain"],
  ])("with %j ends with its room, whose drive: %s", async (options, drive) => {
    await (await create(options)).destroy();
    expect(calls().at(-1)).toBe(`DELETE /v1/rooms/a?drive=${drive}`);
  });

  test("setTimeout counts from now, for both", async () => {
    const sandbox = await create();
    await sandbox.setTimeout(90_500);
    expect(calls().slice(-2)).toEqual(["PATCH /v1/rooms/a/sandboxes/main", "PATCH /v1/rooms/a"]);
    expect([body(-2), body(-1)]).toEqual([{ expires_in_seconds: 91 }, { expires_in_seconds: 91 }]);
  });
});

describe("a sandbox that exists", () => {
  test.each([
    ["of a room of its own ends with it", { "roomd-sdk/own": "true" }, "DELETE /v1/rooms/a?drive=delete"],
    ["of a room of others leaves that", {}, "DELETE /v1/rooms/a/sandboxes/main"],
    [
      "made by a fork leaves the room of its source",
      { "roomd-sdk/own": "true" },
      "DELETE /v1/rooms/a/sandboxes/b",
      "b",
    ],
  ])("is found by its id, and %s", async (_, labels, last, agent_id = "main") => {
    answer = () => ok(record({ labels, room_id: "a", agent_id }));
    const sandbox = await Sandbox.connect("sbx_1", { url: service.url });
    expect(calls()[0]).toBe("GET /v1/locate/sbx_1");
    expect(sandbox.sandboxId).toBe("sbx_1");
    await sandbox.destroy();
    expect(calls().at(-1)).toBe(last);
  });

  test("is listed over all rooms", async () => {
    answer = () => ok({ items: [record()], next_cursor: null });
    const options = { url: service.url, label: { name: "team", value: "a:b" }, state: "hibernated" as const };
    const found = await Array.fromAsync(Sandbox.list(options));
    expect(found.map(({ sandbox_id }) => sandbox_id)).toEqual(["sbx_1"]);
    const query = new URL(service.asked[0]?.path ?? "", "http://x").searchParams;
    expect(Object.fromEntries(query)).toMatchObject({ label: "team:a:b", state: "hibernated" });
  });

  test.each([
    [() => ok(record()), true],
    [() => ok(record({ state: "hibernated" })), false],
    [() => problem(404, "sandbox_not_found", false), false],
  ])("runs or does not", async (reply, runs) => {
    answer = reply;
    expect(await open().isRunning()).toBe(runs);
  });

  test("without loaded data throws an error with the remedy", () => {
    expect(() => open().sandboxId).toThrow("call get() first");
  });

  test("is exposed once its server listens", async () => {
    let callCount = 0;
    answer = () => ok({ port: 3000, listening: ++callCount > 2 });
    expect(await open().exposePort(3000, { wait: true })).toMatchObject({ listening: true });
    expect(service.asked).toHaveLength(3);
    expect(body(0).wait_ms).toBe(50_000);
    await open().exposePort(3000);
    expect(body(-1)).not.toHaveProperty("wait_ms");
  });
});

describe("a server in a sandbox", () => {
  const text = (content: string): Reply => ({ status: 200, headers: { "Content-Type": "text/plain" }, text: content });
  const HEAD = "  sl  local_address rem_address   st tx_queue\n";
  const CONNECTED = "   1: 0100007F:0BB8 0100007F:9C40 01 00000000:00000000\n";
  const LISTENS = "   0: 00000000000000000000000000000000:0BB8 00000000000000000000000000000000:0000 0A 00000000\n";

  test("is awaited through the kernel's tables alone, in either of the two", async () => {
    let read = 0;
    answer = ({ path }) => {
      if (path.endsWith("/proc/net/tcp")) return text(HEAD + CONNECTED);
      return ++read < 2 ? problem(404, "path_not_found", false) : text(HEAD + LISTENS);
    };
    await open().waitForPort(3000);
    const files = "GET /v1/rooms/a/sandboxes/main/files/raw/proc/net";
    expect(calls()).toEqual([`${files}/tcp`, `${files}/tcp6`, `${files}/tcp`, `${files}/tcp6`]);
  });

  test("that does not start is a TimeoutError that names the port", async () => {
    answer = () => text(HEAD + CONNECTED);
    const late = { name: "TimeoutError", message: "No server listens on port 3000 after 50 ms." };
    await expect(open().waitForPort(3000, { waitMs: 50 })).rejects.toMatchObject(late);
    const reason = new Error("gone");
    await expect(open().waitForPort(3000, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

test.each([
  [() => ok({ type: "file" }), true],
  [() => problem(404, "path_not_found", false), false],
])("a path exists or does not", async (reply, exists) => {
  answer = reply;
  expect(await open().exists("/x")).toBe(exists);
});

describe("a fork", () => {
  const item = (agent_id: string, failed = false) => ({
    agent_id,
    sandbox: failed ? null : record({ agent_id }),
    problem: failed ? { code: "insufficient_capacity", title: "", detail: "No memory." } : null,
  });

  test("is sandboxes", async () => {
    answer = () => ok({ snapshot_id: "snap_1", items: [item("b"), item("c")] });
    const copies = await open().fork(["b", "c"]);
    expect(copies.map(({ agentId, state }) => [agentId, state])).toEqual([
      ["b", "running"],
      ["c", "running"],
    ]);
  });

  test("with a failed sandbox throws, with the created ones", async () => {
    answer = () => ok({ snapshot_id: "snap_1", items: [item("b"), item("c", true)] });
    const error = await open()
      .fork(["b", "c"])
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ForkError);
    const { sandboxes, problems, message } = error as ForkError;
    expect(sandboxes.map(({ agentId }) => agentId)).toEqual(["b"]);
    expect(problems).toMatchObject([{ agent_id: "c", code: "insufficient_capacity" }]);
    expect(message).toMatch(/^1 of 2 .* c: No memory\.$/);
  });
});

test("a template that fails to build throws, with the last lines of its output", async () => {
  const line = (text: string) => ({ seq: 1, type: "stdout", data_b64: Buffer.from(text).toString("base64") });
  const build = { template_id: "t", build_id: "bld_1", state: "failed", failure: { detail: "A step failed." } };
  const lot = Array.from({ length: 100 }, (_, index) => `line ${index}\n`).join("");
  answer = ({ path }) => (path.includes("/stream") ? lines(line(lot), line("no such host\n"), EXIT) : ok(build));
  const building = new Roomd({ url: service.url }).templates.build({ template_id: "t" } as never);
  const error = await building.catch((thrown: unknown) => thrown as Error & { lastLines: string[] });
  expect(error).toMatchObject({ name: "TemplateBuildError", build: { build_id: "bld_1" } });
  const { lastLines, message } = error as { lastLines: string[]; message: string };
  expect([lastLines.length, lastLines.at(-1)]).toEqual([20, "no such host"]);
  expect(message).toMatch(/ t .*: A step failed\.\nline 81\n[\s\S]*no such host$/);
});

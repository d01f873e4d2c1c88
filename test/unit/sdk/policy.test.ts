/** The SDK's policy of retries and of streams, call by call, against a scripted service. */
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  Client,
  continuing,
  type Download,
  Execution,
  LimitError,
  type Retry,
  Roomd,
  StreamError,
  TimeoutError,
  UnavailableError,
} from "../../../sdk/typescript/src/index.ts";
import { follow as goingOn } from "../../../sdk/typescript/src/stream.ts";
import type { RawResponse } from "../../../sdk/typescript/src/transport.ts";
import { type Asked, BROKEN, JSON_TYPE, lines, ok, problem, type Reply, ScriptedService } from "./scripted-service.ts";

const SOON = { timeoutMs: 200 };
const ROOM = { room_id: "a" };
const EXECUTION = { room_id: "a", sandbox: "b", exec_id: "c" };
const out = (seq: number) => ({ type: "stdout", seq, data_b64: "" });

let service: ScriptedService;
let client: Client;
let replies: Reply[];
let recorded: Asked[];

beforeEach(async () => {
  replies = [];
  service = await ScriptedService.start(() => replies.shift() ?? problem(500, "internal", false));
  recorded = service.asked;
  client = new Client({ url: `${service.url}/below`, apiKey: "key-1" });
});
afterEach(() => {
  client.close();
  service.stop();
});

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/** A port without a listener. */
async function freePort(): Promise<number> {
  const one = createServer();
  await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));
  const { port } = one.address() as AddressInfo;
  await new Promise<unknown>((resolve) => one.close(resolve));
  return port;
}

const create = (options = {}) => client.call("room_create", ROOM, options);
const keys = () => recorded.map(({ headers }) => String(headers["idempotency-key"]));

describe("a call", () => {
  test("sends its key, below any path of the service", async () => {
    replies = [ok(ROOM)];
    await create();
    expect(recorded[0]).toMatchObject({ path: "/below/v1/rooms", headers: { authorization: "Bearer key-1" } });
  });

  test("continues the caller's trace, else its client's", async () => {
    const [one, other] = ["1", "2"].map((digit) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`) as [string, string];
    replies = [ok(ROOM), ok(ROOM), ok(ROOM)];
    const { url } = client;
    const traced = new Client({ url, traceparent: () => other });
    await traced.call("room_create", ROOM);
    await continuing(one, () => traced.call("room_create", ROOM));
    await create();
    traced.close();
    expect(recorded.map(({ headers }) => headers.traceparent)).toEqual([other, one, undefined]);
  });

  test("keeps its key across faults", async () => {
    const gateway = { status: 502, headers: { "Content-Type": "text/html", "Retry-After": "0" }, text: "<h1>502</h1>" };
    const json = { status: 502, headers: { ...JSON_TYPE, "Retry-After": "0" }, text: "{}" };
    replies = [problem(503, "not_ready", true), gateway, json, BROKEN, ok(ROOM)];
    expect(await create()).toEqual(ROOM);
    expect([recorded.length, new Set(keys()).size]).toEqual([5, 1]);
  });

  test("refused temporarily is retried as a new call", async () => {
    replies = [problem(429, "inbox_full", true), ok(ROOM)];
    await create();
    expect(new Set(keys()).size).toBe(2);
  });

  test("still in progress keeps its key, and is awaited", async () => {
    replies = [BROKEN, ...Array.from({ length: 10 }, () => problem(409, "idempotency_in_progress", true)), ok(ROOM)];
    await create();
    expect([recorded.length, new Set(keys()).size]).toEqual([12, 1]);
  });

  test("that may have been carried out keeps its key even after a rate limit", async () => {
    const fast = () => problem(429, "rate_limited", true);
    replies = [BROKEN, fast(), problem(429, "inbox_full", true), fast(), ok(ROOM)];
    await create();
    const [one, two, three, four, five] = keys();
    expect([two, three]).toEqual([one, one]);
    expect(new Set([three, four, five]).size).toBe(3);
  });

  test("with a caller's key keeps it", async () => {
    replies = [problem(429, "rate_limited", true), ok(ROOM)];
    await create({ idempotencyKey: "mine" });
    expect(keys()).toEqual(["mine", "mine"]);
  });

  test.each([
    ["for an error that is not retryable", problem(500, "internal", false)],
    ["for the outcome of a wait", problem(504, "reply_timeout", true)],
    ["for a retry past its deadline", problem(429, "rate_limited", true, "60")],
  ])("throws immediately %s", async (_, reply) => {
    replies = [reply];
    const kind = reply.status === 429 ? LimitError : UnavailableError;
    await expect(create({ timeoutMs: 2000 })).rejects.toBeInstanceOf(kind);
    expect(recorded).toHaveLength(1);
  });

  test("has six attempts", async () => {
    replies = Array.from({ length: 7 }, () => problem(503, "not_ready", true));
    await expect(create()).rejects.toBeInstanceOf(UnavailableError);
    expect(recorded).toHaveLength(6);
  });

  test("to a service other than roomd reports that", async () => {
    replies = [{ status: 404, headers: { "Content-Type": "text/html" }, text: "nothing" }];
    await expect(create()).rejects.toMatchObject({ name: "ConnectionError", fault: "foreign", status: 404 });
  });

  test("for health returns the full response even if it is not healthy", async () => {
    replies = [{ status: 503, headers: JSON_TYPE, text: '{"status":"unavailable"}' }];
    expect(await client.call("health", {})).toEqual({ status: "unavailable" });
  });

  test("for a list reads all pages", async () => {
    replies = [ok({ items: [1, 2], next_cursor: "more" }), ok({ items: [3], next_cursor: null })];
    expect(await Array.fromAsync(client.items("room_list", {}))).toEqual([1, 2, 3]);
    expect(recorded[1]?.path).toBe("/below/v1/rooms?cursor=more");
  });
});

describe("a DELETE", () => {
  const remove = () => new Roomd({ url: client.url }).rooms.open("a").drive.delete("/x");
  const notFound = () => problem(404, "path_not_found", false);

  test("whose response was lost succeeds if the object is gone", async () => {
    replies = [BROKEN, notFound()];
    await remove();
    expect(recorded).toHaveLength(2);
  });

  test("aborted by a proxy may have succeeded", async () => {
    replies = [{ status: 504, headers: { "retry-after": "0" }, text: "" }, notFound()];
    await remove();
    expect(recorded).toHaveLength(2);
  });

  test("refused before does not succeed if the object is missing", async () => {
    replies = [problem(503, "not_ready", true), notFound()];
    await expect(remove()).rejects.toMatchObject({ code: "path_not_found" });
  });
});

describe("a call that is retried only if it was interrupted", () => {
  const retry: Retry = { after: "interrupted" };
  const busy = () => problem(503, "not_ready", true);
  const destroy = () => client.call("room_destroy", ROOM, { retry });

  test.each([
    ["if the service refuses temporarily", busy(), { code: "not_ready" }],
    ["if the responder is not roomd", { ...busy(), headers: {} }, { fault: "foreign", status: 503 }],
    ["if its response cannot be parsed", { status: 200, headers: JSON_TYPE, text: "hello" }, { fault: "foreign" }],
    ["if a refusal cannot be parsed", { ...busy(), text: "hello" }, { fault: "foreign", status: 503 }],
  ])("fails immediately %s", async (_, reply, error) => {
    replies = [reply];
    await expect(create({ retry })).rejects.toMatchObject(error);
    expect(recorded).toHaveLength(1);
  });

  test("fails immediately if the connection is refused, with the URL", async () => {
    const port = await freePort();
    const nobody = new Client({ url: `http://127.0.0.1:${port}`, retry });
    const startedAt = performance.now();
    const failed = nobody.call("room_get", ROOM);
    await expect(failed).rejects.toMatchObject({ fault: "unreachable", url: `http://127.0.0.1:${port}` });
    expect(performance.now() - startedAt).toBeLessThan(200);
  });

  test("then keeps retrying with its key, for any error", async () => {
    replies = [BROKEN, busy(), ok(ROOM)];
    expect(await create({ retry })).toEqual(ROOM);
    expect([recorded.length, new Set(keys()).size]).toEqual([3, 1]);
  });

  test("is not retried if a retry cannot be recognized", async () => {
    replies = [BROKEN, ok(ROOM)];
    await expect(destroy()).rejects.toMatchObject({ fault: "broken" });
    expect(recorded).toHaveLength(1);
  });
});

describe("a call that is retried for a time", () => {
  const retry: Retry = { after: "any", forMs: 400 };

  test("is retried as often as needed", async () => {
    replies = [...Array.from({ length: 8 }, () => problem(503, "not_ready", true)), ok(ROOM)];
    expect(await create({ retry })).toEqual(ROOM);
    expect(recorded).toHaveLength(9);
  });

  test("fails after it", async () => {
    replies = Array.from({ length: 1000 }, () => problem(503, "not_ready", true, "60"));
    const startedAt = performance.now();
    await expect(create({ retry })).rejects.toBeInstanceOf(UnavailableError);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(399);
    expect(performance.now() - startedAt).toBeLessThan(1000);
    expect(recorded).toHaveLength(2);
  });
});

describe("a client that has never had a response", () => {
  test.each([
    ["a refused connection", async () => `http://127.0.0.1:${await freePort()}`],
    ["a name that does not resolve", async () => "http://no-such-host.invalid:8080"],
  ])("reports %s within two seconds with its remedy", async (_, target) => {
    const url = await target();
    const lone = new Client({ url });
    for (const call of [
      () => lone.call("room_create", ROOM),
      () => Array.fromAsync(lone.events("room_events", ROOM)),
    ]) {
      const startedAt = performance.now();
      const remedy = expect.stringContaining("ROOMD_URL");
      await expect(call()).rejects.toMatchObject({ fault: "unreachable", url, message: remedy });
      expect(performance.now() - startedAt).toBeLessThan(2000);
    }
  });

  test("reaches a service that starts within a second", async () => {
    const port = await freePort();
    const lone = new Client({ url: `http://127.0.0.1:${port}` });
    vi.spyOn(Math, "random").mockReturnValueOnce(0.5);
    const room = lone.call("room_get", ROOM);
    const late = createServer((_, response) => response.writeHead(200, JSON_TYPE).end('{"room_id":"a"}'));
    late.listen(port, "127.0.0.1");
    expect(await room).toEqual(ROOM);
    lone.close();
    late.close();
  });

  test("keeps six attempts for gateway errors", async () => {
    replies = Array.from({ length: 6 }, () => ({ status: 503, headers: { "Retry-After": "0" }, text: "" }));
    await expect(create()).rejects.toMatchObject({ fault: "foreign", status: 503 });
    expect(recorded).toHaveLength(6);
  });

  test("obeys a given retry time", async () => {
    const lone = new Client({ url: `http://127.0.0.1:${await freePort()}`, retry: { after: "any", forMs: 1500 } });
    const startedAt = performance.now();
    await expect(lone.call("room_get", ROOM)).rejects.toMatchObject({ fault: "unreachable" });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1499);
  });
});

test("a client with an earlier response makes six attempts at a refused connection", async () => {
  replies = [{ ...ok(ROOM), headers: { ...JSON_TYPE, Connection: "close" } }];
  await create();
  service.stop();
  vi.spyOn(Math, "random").mockReturnValue(0.15);
  const startedAt = performance.now();
  await expect(create()).rejects.toMatchObject({ fault: "unreachable" });
  vi.restoreAllMocks();
  // Pauses of 0.15 × (500 + 1000 + 2000 + 4000 + 8000) ms.
  expect(performance.now() - startedAt).toBeGreaterThan(2000);
});

describe("a separate program", () => {
  test("sends its own name, and provides its key before every attempt", async () => {
    const tokens = ["one", "two", null];
    const own = new Client({ url: client.url, userAgent: "mine/1", apiKey: async () => tokens.shift() ?? null });
    replies = [problem(503, "not_ready", true), ok(ROOM), ok(ROOM)];
    await own.call("room_get", ROOM);
    await own.call("room_get", ROOM);
    expect(recorded.map(({ headers }) => headers.authorization)).toEqual(["Bearer one", "Bearer two", undefined]);
    expect(recorded[0]?.headers["user-agent"]).toBe("mine/1");
  });

  test("that cannot provide its key throws its own error", async () => {
    const own = new Client({ url: client.url, apiKey: () => Promise.reject(new Error("signed out")) });
    await expect(own.call("room_get", ROOM)).rejects.toThrow("signed out");
    expect(recorded).toEqual([]);
  });

  test("receives a response unchanged, also that of a file", async () => {
    const text = '{ "room_id":\n"a" }';
    replies = [{ status: 201, headers: JSON_TYPE, text }, ok({ path: "/x" })];
    expect(await client.reply("room_create", ROOM)).toEqual({ value: ROOM, text, status: 201 });
    const written = await client.reply("file_put", { ...ROOM, path: "x" }, { body: "hello" });
    expect(written.text).toBe('{"path":"/x"}');
    expect(recorded[1]?.headers).toMatchObject({ "content-type": "application/octet-stream", "content-length": "5" });
  });

  test("builds WebSocket URLs from the operation", () => {
    const input = { room_id: "a b", sandbox: "w", terminal_id: "t", takeover: true, since: undefined };
    const place = "/v1/rooms/a%20b/sandboxes/w/terminals/t/ws?takeover=true";
    expect(client.socketUrl("terminal_attach", input)).toBe(client.url.replace("http", "ws") + place);
  });

  test("reaches the service through the proxy in its environment", async () => {
    const proxyEnv = { http_proxy: client.url, HTTP_PROXY: client.url };
    const behind = new Client({ url: "http://rooms.example.test", proxyEnv });
    replies = [ok(ROOM), ok({ path: "/x" })];
    await behind.call("room_get", ROOM);
    await behind.upload("file_put", { ...ROOM, path: "x" }, once("hello"));
    expect(recorded.map(({ path }) => path)).toEqual([
      "http://rooms.example.test/v1/rooms/a",
      "http://rooms.example.test/v1/rooms/a/drive/files/x",
    ]);
  });
});

describe("a call that is not sent", () => {
  test.each(["../../other/files/x", "a/./b", "..", "/a/.."])("has a path that leads elsewhere: %s", async (path) => {
    const { drive } = new Roomd({ url: client.url }).rooms.open("a");
    await expect(drive.readText(path)).rejects.toMatchObject({ name: "UsageError" });
    await expect(new Roomd({ url: client.url }).rooms.open("..").get()).rejects.toMatchObject({ name: "UsageError" });
    expect(recorded).toEqual([]);
  });

  test("has an invalid key; surrounding space is trimmed", async () => {
    expect(() => new Client({ apiKey: "key\n1" })).toThrow("invalid characters");
    replies = [ok(ROOM)];
    const trimmed = new Client({ url: client.url, apiKey: "key-1\n" });
    await trimmed.call("room_get", ROOM);
    expect(recorded[0]?.headers.authorization).toBe("Bearer key-1");
  });
});

describe("data that never arrives", () => {
  /** The head, and then nothing. */
  const stalled = (status: number, headers: Record<string, string>): Reply => ({
    status,
    headers: { ...headers, "Content-Length": "99", "X-Stalls": "1" },
    text: "{",
  });

  test.each([
    ["a file", stalled(200, {}), () => new Roomd({ url: client.url }).rooms.open("a").drive.read("/x", SOON)],
    ["a refusal", stalled(409, { "Content-Type": "application/problem+json" }), () => create(SOON)],
    ["an answer", stalled(200, JSON_TYPE), () => create(SOON)],
  ])("is awaited as long as the caller allows: %s", async (_, reply, ask) => {
    replies = [reply];
    await expect(ask()).rejects.toMatchObject({ name: "TimeoutError" });
  });

  test("of a started file is awaited until the signal aborts", async () => {
    replies = [stalled(200, {})];
    const ended = AbortSignal.timeout(SOON.timeoutMs);
    const { drive } = new Roomd({ url: client.url }).rooms.open("a");
    const { stream } = await drive.open("/x", { signal: ended });
    await expect(Array.fromAsync(stream)).rejects.toMatchObject({ name: "TimeoutError" });
  });

  test("of a started file is awaited as long as the caller allows", async () => {
    replies = [stalled(200, {})];
    const { stream } = await client.download("file_get", { ...ROOM, path: "x" }, { silentMs: 100 });
    await expect(Array.fromAsync(stream)).rejects.toMatchObject({ name: "ConnectionError", fault: "broken" });
  });

  test.each<[string, (file: Download, left: AbortController) => unknown]>([
    ["it is closed", (file) => file.close()],
    ["its block ends", (file) => file[Symbol.asyncDispose]()],
    ["its signal aborts", (_, left) => left.abort()],
  ])("of an unread file holds no connection once %s", async (_, end) => {
    replies = [stalled(200, {})];
    const left = new AbortController();
    const file = await client.download("file_get", { ...ROOM, path: "x" }, { signal: left.signal });
    expect(service.connections).toBe(1);
    await end(file, left);
    await vi.waitFor(() => expect(service.connections).toBe(0));
    await expect(file.bytes()).rejects.toThrow();
  });

  test("of a file that cannot be written locally holds no connection", async () => {
    replies = [stalled(200, {})];
    const { drive } = new Roomd({ url: client.url }).rooms.open("a");
    await expect(drive.download("/x", "/none/x")).rejects.toMatchObject({ code: "ENOENT" });
    await vi.waitFor(() => expect(service.connections).toBe(0));
  });

  test("of a file replaces no device, pipe or link, and keeps a file's permissions", async () => {
    replies = [1, 2].map(() => ({ status: 200, headers: {}, text: "new" }));
    const { drive } = new Roomd({ url: client.url }).rooms.open("a");
    const directory = mkdtempSync(join(tmpdir(), "roomd-download-"));
    const [pipe, link, file] = ["pipe", "link", "file"].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    try {
      writeFileSync(file, "old", { mode: 0o600 });
      symlinkSync("file", link);
      Bun.spawnSync(["mkfifo", pipe]);
      const reader = Bun.spawn(["cat", pipe], { stdout: "pipe" });
      await drive.download("/x", pipe);
      const isPipe = lstatSync(pipe).isFIFO();
      if (!isPipe) reader.kill();
      expect([isPipe, await reader.stdout.text()]).toEqual([true, "new"]);
      await drive.download("/x", link);
      expect([lstatSync(link).isSymbolicLink(), readFileSync(file, "utf8")]).toEqual([true, "new"]);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readdirSync(directory).sort()).toEqual(["file", "link", "pipe"]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("of an interrupted file is requested again", async () => {
    const cut = { ...BROKEN, headers: { "Content-Length": "99" } };
    replies = [cut, { status: 200, headers: {}, text: "whole" }];
    expect(await new Roomd({ url: client.url }).rooms.open("a").drive.readText("/x")).toBe("whole");
  });

  test("from another service gives an error with its address, and no request is sent there", async () => {
    replies = [{ status: 308, headers: { Location: "https://elsewhere.example.com/" }, text: "" }];
    await expect(create()).rejects.toThrow("leads to https://elsewhere.example.com/");
    replies = [{ status: 200, headers: { "Content-Type": "text/html" }, text: "<h1>hello</h1>" }];
    await expect(create()).rejects.toMatchObject({ name: "ConnectionError", fault: "foreign", status: 200 });
    expect(recorded).toHaveLength(2);
  });

  test("fails with the reason of a signal already aborted, also for a file to send", async () => {
    const { drive } = new Roomd({ url: client.url }).rooms.open("a");
    const signal = AbortSignal.abort(new Error("gone"));
    await expect(drive.write("/x", once("hello"), { signal })).rejects.toThrow(/^gone$/);
    expect(recorded).toEqual([]);
  });

  test("passes on an error of its source unchanged", async () => {
    async function* source(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(3);
      throw new Error("the disk is gone");
    }
    const written = new Roomd({ url: client.url }).rooms.open("a").drive.write("/x", source());
    await expect(written).rejects.toThrow("the disk is gone");
  });
});

describe("an inbox", () => {
  const message = (seq: number) => ({ message_id: `m-${seq}`, seq, payload: seq });
  const inbox = (next_after: number, ...items: object[]) => ok({ items, next_cursor: null, next_after });
  const places = () => recorded.map(({ path }) => new URLSearchParams(path.split("?")[1]).get("after"));

  test("resumes at the service's position, also after a repeated message", async () => {
    const agent = new Roomd({ url: client.url }).rooms.open("a").agent("w");
    replies = [inbox(9, message(9)), inbox(9, message(2)), inbox(10, message(10))];
    for (const seq of [9, 2, 10]) expect((await agent.wait())?.seq).toBe(seq);
    expect(places()).toEqual([null, "9", "9"]);
  });

  test("has a position per filter, shared by every handle of the agent", async () => {
    const room = new Roomd({ url: client.url }).rooms.open("a");
    replies = [inbox(10, message(10)), inbox(5, message(5)), inbox(11, message(11))];
    await room.agent("w").wait({ topic: "b" });
    await room.agent("w").wait();
    await room.agent("w").wait({ topic: "b" });
    expect(places()).toEqual([null, null, "10"]);
  });

  test("delivers no message to two waiters", async () => {
    const agent = new Roomd({ url: client.url }).rooms.open("a").agent("w");
    replies = [inbox(1, message(1)), inbox(2, message(2))];
    const got = await Promise.all([agent.wait(), agent.wait()]);
    expect(got.map((each) => each?.seq)).toEqual([1, 2]);
    expect(places()).toEqual([null, "1"]);
  });
});

describe("a file", () => {
  test("is read unchanged, including its byte order mark", async () => {
    const text = "\ufeffhello";
    replies = [
      { status: 200, headers: {}, text },
      { status: 200, headers: {}, text },
    ];
    const room = new Roomd({ url: client.url }).rooms.open("a");
    expect(await room.drive.readText("/x")).toBe(text);
    expect(await room.sandbox("b").files.readText("/x")).toBe(text);
  });

  test("is never missing in a list, whose pages are requested one after another", async () => {
    const page = (name: string, next_cursor: string | null) => ok({ path: "/x", items: [{ name }], next_cursor });
    replies = [page("one", "c"), page("two", null)];
    const { files } = new Roomd({ url: client.url }).rooms.open("a").sandbox("b");
    const names: string[] = [];
    for await (const { name } of files.list("/x")) names.push(name);
    expect(names).toEqual(["one", "two"]);
    expect(recorded[1]?.path).toContain("cursor=c");
  });

  test("that is missing is NotFoundError, on the drive and in a sandbox alike, and does not exist", async () => {
    const room = new Roomd({ url: client.url }).rooms.open("a");
    const { files } = room.sandbox("b");
    const missing = () => problem(404, "path_not_found", false);
    replies = [missing(), missing(), missing(), missing()];
    await expect(room.drive.read("/x")).rejects.toMatchObject({ name: "NotFoundError" });
    await expect(files.read("/x")).rejects.toMatchObject({ name: "NotFoundError" });
    expect(await files.exists("/x")).toBe(false);
    expect(await files.delete("/x")).toBe(false);
    await expect(files.read("x")).rejects.toMatchObject({ name: "UsageError" });
  });
});

describe("output already overwritten", () => {
  test("is omitted, and the result reports that", async () => {
    const sandbox = new Roomd({ url: client.url }).rooms.open("a").sandbox("b");
    const exit = { type: "exit", seq: 9, exit_code: 0, signal: null, timed_out: false, duration_ms: 1 };
    const late = { type: "stdout", seq: 8, data_b64: btoa("late") };
    replies = [problem(410, "history_gone", false), ok({ oldest_seq: 8 }), lines(late, exit)];
    const done = await sandbox.execution("c").wait();
    expect(done).toMatchObject({ stdout: "late", exitCode: 0, stdoutTruncated: true });
    expect(recorded[2]?.path).toContain("after=7");
  });

  test("is reported in its position", async () => {
    const late = { type: "stdout", seq: 8, data_b64: btoa("late") };
    replies = [lines(out(3)), problem(410, "history_gone", false), ok({ oldest_seq: 8 }), lines(late)];
    replies.push(lines({ type: "exit", seq: 9, exit_code: 0 }));
    const received: unknown[] = [];
    const onGap = () => void received.push("gap");
    for await (const { seq } of new Execution(client, EXECUTION, "c").output({ after: 2, onGap })) received.push(seq);
    expect(received).toEqual([3, "gap", 8]);
    expect(recorded[0]?.path).toContain("after=2&follow=true");
  });
});

describe("output so far", () => {
  test("ends at the current position, whether the command has ended or not", async () => {
    replies = [lines(out(1), out(2)), lines(out(3), { type: "exit", seq: 4, exit_code: 7 })];
    const execution = new Execution(client, EXECUTION, "c");
    const running = execution.outputSoFar();
    expect([(await running.next()).value, (await running.next()).value]).toMatchObject([{ seq: 1 }, { seq: 2 }]);
    expect(await running.next()).toEqual({ done: true, value: null });
    const ended = execution.outputSoFar({ after: 2 });
    expect([(await ended.next()).value, (await ended.next()).value]).toMatchObject([{ seq: 3 }, { exit_code: 7 }]);
    expect(recorded.map(({ path }) => path.split("?")[1])).toEqual(["after=-1&follow=false", "after=2&follow=false"]);
  });
});

describe("a stream", () => {
  const follow = async () =>
    (await Array.fromAsync(client.events("execution_stream", EXECUTION))).map((event) => "seq" in event && event.seq);

  test("without its end is resumed", async () => {
    const end = { type: "exit", seq: 4 };
    replies = [lines(out(1), out(2)), lines(), lines({ type: "ping" }, out(3)), lines(end, out(5))];
    expect(await follow()).toEqual([1, 2, 3, 4]);
    expect(recorded.map(({ path }) => path.split("?")[1])).toEqual([undefined, "after=2", "after=2", "after=3"]);
  });

  test("interrupted within an event requests that event again", async () => {
    const { status, headers, text } = lines(out(1), out(2));
    replies = [{ status, headers, text: text.slice(0, -5) }, lines(out(2), { type: "exit", seq: 3 })];
    expect(await follow()).toEqual([1, 2, 3]);
  });

  test("reports each interruption once", async () => {
    replies = [lines(out(1)), lines(), lines(), lines(out(2)), lines({ type: "exit", seq: 3 })];
    const received: unknown[] = [];
    const onCut = () => void received.push("cut");
    for await (const event of client.events("execution_stream", EXECUTION, { onCut })) received.push(event.type);
    expect(received).toEqual(["stdout", "cut", "stdout", "cut", "exit"]);
  });

  test.each([
    ["that is refused temporarily", {}, [problem(502, "guest_unreachable", true)]],
    ["that is interrupted before an event with its position", {}, [lines({ type: "ping" })]],
    ["that is refused temporarily, at any position", { after: 7 }, [problem(503, "not_ready", true)]],
  ])("%s fails immediately if configured", async (_, place, first) => {
    replies = [...first, lines({ type: "exit", seq: 9 })];
    const events = client.events("execution_stream", { ...EXECUTION, ...place }, { retry: { after: "interrupted" } });
    await expect(Array.fromAsync(events)).rejects.toThrow();
    expect(recorded).toHaveLength(1);
  });

  test.each([
    ["an event", {}, out(1)],
    ["its caller and anything at all", { after: 1 }, { type: "ping" }],
  ])("with a position from %s is resumed anyway", async (_, place, event) => {
    replies = [lines(event), problem(503, "not_ready", true), lines({ type: "exit", seq: 9 })];
    const events = client.events("execution_stream", { ...EXECUTION, ...place }, { retry: { after: "interrupted" } });
    expect((await Array.fromAsync(events)).at(-1)).toMatchObject({ type: "exit" });
  });

  test("is requested again even if a resume hangs", async () => {
    const answered = (...events: object[]) =>
      ({
        status: 200,
        headers: {},
        body: Object.assign(Readable.from([Buffer.from(lines(...events).text)]), { complete: true }),
      }) as unknown as RawResponse;
    const tries: (() => RawResponse)[] = [
      () => answered(out(1)),
      () => {
        throw new TimeoutError("The service has not answered in time.");
      },
      () => answered({ type: "exit", seq: 2 }),
    ];
    const times: (number | undefined)[] = [];
    const events = goingOn<{ type: string; seq: number }, number>({
      open: async (_, timeoutMs) => {
        times.push(timeoutMs);
        return tries.shift()?.() as RawResponse;
      },
      placeOf: ({ seq }) => seq,
      isLast: ({ type }) => type === "exit",
      mayEnd: false,
      isPlaced: false,
      retry: { after: "any" },
      hasAnswered: () => true,
    });
    expect((await Array.fromAsync(events)).map(({ seq }) => seq)).toEqual([1, 2]);
    expect(times).toEqual([undefined, 45_000, 45_000]);
  });

  test("that cannot be resumed throws the reason", async () => {
    replies = [lines(out(1), { type: "error", code: "sandbox_not_found", detail: "It has gone.", retryable: false })];
    await expect(follow()).rejects.toMatchObject({
      name: "StreamError",
      code: "sandbox_not_found",
      message: "It has gone.",
    });
  });

  test("of an audit is resumed if the code allows it, and ends with its room", async () => {
    const end = { event: "room.destroyed", outcome: "success", seq: 9 };
    replies = [lines({ type: "error", code: "shutting_down" }), lines(), lines(end)];
    expect(await Array.fromAsync(client.events("room_events", ROOM))).toEqual([end]);
    replies = [lines({ type: "error", code: "api_key_expired" })];
    await expect(Array.fromAsync(client.events("room_events", ROOM))).rejects.toBeInstanceOf(StreamError);
  });

  test("of a room resumes at its start position, also if it was interrupted before its first event", async () => {
    const event = { event: "drive.written", outcome: "success", seq: 8 };
    const end = { event: "room.destroyed", outcome: "success", seq: 9 };
    replies = [ok({ items: [{ seq: 7 }], next_cursor: null }), lines(), lines(event, end)];
    const events = new Roomd({ url: client.url }).rooms.open("a").events();
    expect(await Array.fromAsync(events)).toEqual([event, end]);
    expect(recorded.slice(1).map(({ path }) => path.split("?")[1])).toEqual(["after=7", "after=7"]);
  });

  test("of a terminal is resumed after its last byte", async () => {
    replies = [lines({ type: "output", offset: 10, data_b64: "YWJj" }), lines({ type: "exit" })];
    const events = client.events("terminal_watch", { room_id: "a", sandbox: "b", terminal_id: "c" });
    expect((await Array.fromAsync(events)).map(({ type }) => type)).toEqual(["output", "exit"]);
    expect(recorded[1]?.path.split("?")[1]).toBe("after=13");
  });
});

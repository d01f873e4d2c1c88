/** Behaviour of the SDK for TypeScript that the SDK for Python does not have in this form: signals, callbacks, raw responses, streams of files. */
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
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Client, type Download, Execution, Roomd, Sandbox, TimeoutError } from "../../../sdk/typescript/src/index.ts";
import { follow as following } from "../../../sdk/typescript/src/stream.ts";
import type { RawResponse } from "../../../sdk/typescript/src/transport.ts";
import { type Asked, JSON_TYPE, lines, ok, problem, type Reply, ScriptedService, stalled } from "./scripted-service.ts";

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

describe("a file that is read or written", () => {
  test("of a started file is awaited until the signal aborts", async () => {
    replies = [stalled(200, {})];
    const ended = AbortSignal.timeout(200);
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

  test("delivers no message to two waiters", async () => {
    const agent = new Roomd({ url: client.url }).rooms.open("a").agent("w");
    replies = [inbox(1, message(1)), inbox(2, message(2))];
    const got = await Promise.all([agent.wait(), agent.wait()]);
    expect(got.map((each) => each?.seq)).toEqual([1, 2]);
    expect(places()).toEqual([null, "1"]);
  });
});

describe("output of a command", () => {
  test("that was dropped is reported in its position", async () => {
    const late = { type: "stdout", seq: 8, data_b64: btoa("late") };
    replies = [lines(out(3)), problem(410, "history_gone", false), ok({ oldest_seq: 8 }), lines(late)];
    replies.push(lines({ type: "exit", seq: 9, exit_code: 0 }));
    const received: unknown[] = [];
    const onGap = () => void received.push("gap");
    for await (const { seq } of new Execution(client, EXECUTION, "c").output({ after: 2, onGap })) received.push(seq);
    expect(received).toEqual([3, "gap", 8]);
    expect(recorded[0]?.path).toContain("after=2&follow=true");
  });

  test("so far ends at the current position, whether the command has ended or not", async () => {
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
  test("reports each interruption once", async () => {
    replies = [lines(out(1)), lines(), lines(), lines(out(2)), lines({ type: "exit", seq: 3 })];
    const received: unknown[] = [];
    const onCut = () => void received.push("cut");
    for await (const event of client.events("execution_stream", EXECUTION, { onCut })) received.push(event.type);
    expect(received).toEqual(["stdout", "cut", "stdout", "cut", "exit"]);
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
    const events = following<{ type: string; seq: number }, number>({
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
});

describe("a sandbox", () => {
  const open = () => new Roomd({ url: client.url }).rooms.open("a").sandbox("main");

  test("has no limit for a command whose limit is infinite", async () => {
    replies = [ok({}), lines({ type: "exit", seq: 1 })];
    await open().exec("true", { timeoutMs: Number.POSITIVE_INFINITY });
    expect(service.bodies()[0]).toMatchObject({ command: "true", timeout_ms: 0 });
  });

  test("is awaited no longer than its signal", async () => {
    const reason = new Error("gone");
    await expect(open().waitForPort(3000, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test("is listed over all rooms", async () => {
    replies = [ok({ items: [{ sandbox_id: "sbx_1" }], next_cursor: null })];
    const options = { url: client.url, label: { name: "team", value: "a:b" }, state: "hibernated" as const };
    expect(await Array.fromAsync(Sandbox.list(options))).toEqual([{ sandbox_id: "sbx_1" }]);
    expect(recorded[0]?.path).toContain("?label=team%3Aa%3Ab&state=hibernated");
  });

  test("without its record throws an error with the remedy", () => {
    expect(() => open().sandboxId).toThrow("get()");
  });
});

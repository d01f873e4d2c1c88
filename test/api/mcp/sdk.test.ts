/**
 * The SDK against a daemon, over a network that loses responses: each call has one effect and returns its result. Commands are in test/vm.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generate } from "../../../sdk/typescript/generate.ts";
import { OPERATIONS as ROWS } from "../../../sdk/typescript/src/generated/operations.ts";
import {
  AuthenticationError,
  ConnectionError,
  InvalidRequestError,
  NotFoundError,
  Roomd,
  TimeoutError,
} from "../../../sdk/typescript/src/index.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { UnreliableProxy } from "../../harness/hosts/unreliable-proxy.ts";
import { OPERATIONS } from "../requests.ts";

let daemon: TestDaemon;
let proxy: UnreliableProxy;
let roomd: Roomd;
/** By way of the proxy. */
let shaken: Roomd;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  proxy = new UnreliableProxy(() => daemon.url);
  roomd = new Roomd({ url: daemon.url, apiKey: daemon.apiKey });
  shaken = new Roomd({ url: await proxy.listen(), apiKey: daemon.apiKey });
});
afterAll(async () => {
  roomd.close();
  shaken.close();
  proxy.close();
  await daemon.stop();
});

/** Injects the fault into the first `times` requests. */
function happens(times: number, fault: ReturnType<typeof proxy.fault>): void {
  let left = times;
  proxy.asked.length = 0;
  proxy.fault = () => (left-- > 0 ? fault : null);
}

test("the generated files match the OpenAPI document", { timeout: 60_000 }, async () => {
  for (const [name, text] of Object.entries(await generate())) {
    const file = Bun.file(`${import.meta.dirname}/../../../sdk/typescript/src/generated/${name}`);
    expect(await file.text(), `run \`bun sdk/typescript/generate.ts\`: ${name} is old`).toBe(text);
  }
});

test("it has a method for every operation", () => {
  expect(Object.keys(ROWS).sort()).toEqual(OPERATIONS.map(({ name }) => name).sort());
  for (const { name, method, path } of OPERATIONS) {
    const row = ROWS[name as keyof typeof ROWS];
    expect([name, row.method, row.path]).toEqual([name, method, path.replace("*}", "}")]);
  }
});

describe("a room", () => {
  test("is created, found, listed and destroyed", async () => {
    const room = await roomd.rooms.create({ labels: { team: "search" } });
    expect((await room.get()).labels).toEqual({ team: "search" });
    const listed = await Array.fromAsync(roomd.rooms.list());
    expect(listed.map(({ room_id }) => room_id)).toContain(room.id);
    await room.destroy();
    await expect(room.get()).rejects.toBeInstanceOf(NotFoundError);
  });

  test("has a drive: upload and download, ranges, lists, watches", async () => {
    const { drive } = await roomd.rooms.create({ roomId: "files" });
    const bytes = crypto.getRandomValues(new Uint8Array(300_000).subarray(0, 65_536));
    expect((await drive.write("/a/b c/%.bin", bytes)).created).toBe(true);
    expect(new Uint8Array(await drive.read("/a/b c/%.bin"))).toEqual(bytes);
    expect(new Uint8Array(await drive.read("/a/b c/%.bin", { offset: 10, length: 5 }))).toEqual(bytes.subarray(10, 15));
    async function* parts() {
      for (const part of ["one ", "two ", "three"]) yield new TextEncoder().encode(part);
    }
    await drive.write("/parts.txt", parts());
    await drive.append("/parts.txt", "\n");
    expect(await drive.readText("/parts.txt")).toBe("one two three\n");
    const { etag } = await drive.open("/parts.txt");
    await expect(drive.write("/parts.txt", "other", { ifMatch: '"none"' })).rejects.toMatchObject({ status: 412 });
    await drive.write("/parts.txt", "other", { ifMatch: etag ?? "" });
    await drive.move("/parts.txt", "/moved.txt");
    const names = await Array.fromAsync(drive.list());
    expect(names.map(({ path }) => path)).toEqual(["/a", "/a/b c", "/a/b c/%.bin", "/moved.txt"]);
    await drive.delete("/a", { recursive: true });
    await expect(drive.stat("/a")).rejects.toMatchObject({ code: "path_not_found" });
  });

  test("has agents with messages, requests and topics", async () => {
    const room = await roomd.rooms.create({ roomId: "talk" });
    const [planner, worker] = [room.agent("planner"), room.agent("worker")];
    await worker.subscribe(["build.*"]);
    const received = worker.wait({ timeoutMs: 10_000 });
    await planner.send("worker", { do: "it" });
    expect((await received)?.payload).toEqual({ do: "it" });
    await planner.send({ topic: "build.done" }, "done");
    expect((await worker.wait())?.payload).toBe("done");
    const reply = planner.request("worker", { question: 1 });
    const request = await worker.wait();
    await worker.reply(request ?? "", { answer: 2 });
    expect((await reply).payload).toEqual({ answer: 2 });
    expect(await worker.wait({ timeoutMs: 0 })).toBeNull();
    await expect(planner.request("worker", "?", { timeoutMs: 50 })).rejects.toBeInstanceOf(TimeoutError);
  });

  test("sends a batch of messages atomically, each to its recipients", async () => {
    const room = await roomd.rooms.create({ roomId: "many" });
    const [planner, worker] = [room.agent("planner"), room.agent("worker")];
    await worker.subscribe(["build.*"]);
    const sent = await planner.sendMany([
      { destination: "worker", payload: 1, messageId: "first", headers: { trace: "7" } },
      { destination: { topic: "build.done" }, payload: 2 },
      { destination: ["worker", "planner"], payload: 3, ackRequired: true },
    ]);
    expect(sent.map(({ message_id, deliveries }) => [message_id, deliveries.length])).toEqual([
      ["first", 1],
      [expect.stringMatching(/^sdk-/), 1],
      [expect.stringMatching(/^sdk-/), 2],
    ]);
    const [first, second, third] = [await worker.wait(), await worker.wait(), await worker.wait()];
    expect([first, second, third].map((message) => message?.payload)).toEqual([1, 2, 3]);
    expect([first?.headers, third?.ack_required]).toEqual([{ trace: "7" }, true]);
    const refused = planner.sendMany([
      { destination: "worker", payload: 4 },
      { destination: "worker", payload: 5, messageId: "first" },
    ]);
    await expect(refused).rejects.toMatchObject({ code: "already_exists" });
    await worker.ack(third ?? "");
    expect(await worker.wait({ timeoutMs: 0 })).toBeNull();
    await room.sendMany([{ destination: "worker", payload: "all" }]);
    expect((await worker.wait())?.source).toBe("operator");
  });

  test("has barriers that release all participants, repeatedly", async () => {
    const room = await roomd.rooms.create({ roomId: "together" });
    const agents = ["a", "b", "c"].map((id) => room.agent(id));
    for (const generation of [1, 2, 3]) {
      const passed = await Promise.all(agents.map((agent) => agent.barrier("step", { parties: 3 })));
      expect(passed.map((each) => [each.state, each.generation])).toEqual(Array(3).fill(["released", generation]));
    }
    await expect(agents[0]?.barrier("never", { parties: 2, timeoutMs: 100 })).rejects.toBeInstanceOf(TimeoutError);
  });

  test("streams its events", async () => {
    const room = await roomd.rooms.create({ roomId: "told" });
    const ended = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const { event } of room.events({ after: 0, signal: ended.signal })) {
        seen.push(event);
        if (event === "drive.written") ended.abort();
      }
    })();
    await room.drive.write("/x", "x");
    await expect(following).rejects.toMatchObject({ name: "AbortError" });
    expect(seen.filter((event) => event !== "audit.followed")).toEqual(["room.created", "drive.written"]);
  });
});

describe("an error", () => {
  test("has its code, all invalid fields, and a remedy", async () => {
    const bad = roomd.client.call("room_create", { room_id: "no name", ttl_seconds: -1 });
    const error = await bad.catch((each: unknown) => each as InvalidRequestError);
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ code: "validation_failed", status: 422, retryable: false });
    expect((error as InvalidRequestError).errors.map(({ field }) => field).sort()).toEqual(["room_id", "ttl_seconds"]);
    await expect(roomd.rooms.open("none").get()).rejects.toMatchObject({ code: "room_not_found", status: 404 });
    const stranger = new Roomd({ url: daemon.url, apiKey: "key-none" });
    await expect(stranger.rooms.open("x").get()).rejects.toBeInstanceOf(AuthenticationError);
    stranger.close();
  });
});

describe("a network that fails", () => {
  test.each(["refused", "answer_lost"] as const)("%s: the call has its effect once", async (fault) => {
    happens(2, fault);
    const room = await shaken.rooms.create({ roomId: `once-${fault.replace("_", "-")}` });
    expect(proxy.asked.map(({ method }) => method)).toEqual(["POST", "POST", "POST"]);
    expect(new Set(proxy.asked.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    const created = await daemon.ok("GET", `/v1/rooms/${room.id}/audit?event=room.created`);
    expect(created.items).toHaveLength(1);
  });

  test("a message is sent once", async () => {
    const room = await shaken.rooms.create({ roomId: "sent-once" });
    await room.agent("b").subscribe([]);
    happens(1, "answer_lost");
    await room.agent("a").send("b", "hello");
    expect(proxy.asked).toHaveLength(2);
    happens(0, null);
    const { items } = await shaken.client.call("agent_wait", { room_id: room.id });
    expect(items.map(({ payload }) => payload)).toEqual(["hello"]);
  });

  test("a file is complete, wherever its response was cut", async () => {
    const { drive } = await shaken.rooms.create({ roomId: "whole" });
    happens(1, "answer_lost");
    await drive.write("/x", "12345");
    expect(await roomd.rooms.open("whole").drive.readText("/x")).toBe("12345");
    happens(1, { cutAfterBytes: 3 });
    expect(await drive.readText("/x")).toBe("12345");
    // A stream that has started cannot be retried by the SDK: its reader gets an error that the data is incomplete.
    happens(1, { cutAfterBytes: 3 });
    await expect((await drive.open("/x")).text()).rejects.toBeInstanceOf(ConnectionError);
  });

  test("a stream that is cut at any byte is resumed without loss or duplicates", async () => {
    const room = await roomd.rooms.create({ roomId: "cut" });
    for (let index = 0; index < 4; index++) await room.drive.write(`/${index}`, "x");
    const input = { room_id: "cut", after: 0, follow: false };
    const whole = await fetch(`${daemon.url}/v1/rooms/cut/events?after=0&follow=false`, {
      headers: { Authorization: `Bearer ${daemon.apiKey}`, Accept: "application/x-ndjson" },
    });
    const text = await whole.text();
    const expected = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).seq);
    expect(expected.length).toBeGreaterThan(4);
    for (let at = 0; at < text.length; at += 97) {
      happens(1, { cutAfterBytes: at });
      const seqs: number[] = [];
      for await (const event of shaken.client.events("room_events", input)) seqs.push(event.seq);
      expect([at, seqs.slice(0, expected.length)]).toEqual([at, expected]);
    }
  });

  test("calls wait for a killed daemon until it is back", async () => {
    happens(0, null);
    const room = await shaken.rooms.create({ roomId: "back" });
    const agent = room.agent("a");
    await agent.subscribe([]);
    const received = agent.wait();
    await daemon.restart("SIGKILL");
    await room.send("a", "still there");
    expect((await received)?.payload).toBe("still there");
  });
});

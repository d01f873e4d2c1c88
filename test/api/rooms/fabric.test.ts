/** Messages between agents, on a daemon without guests: recipients, order, number of deliveries, and refusals. */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_INBOX, MAX_PAYLOAD_BYTES } from "../../../shared/api/fabric.ts";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../calls.ts";

let daemon: TestDaemon;
let count = 0;

beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_FABRIC_ACK: "1s" } });
});
afterAll(() => daemon.stop());

/** A separate room in which these agents are known. */
async function roomOf(...agents: string[]) {
  const id = `fabric-${++count}`;
  await daemon.room(id);
  const path = `/v1/rooms/${id}`;
  const inbox = async (agent: string, query = ""): Promise<Json> =>
    await daemon.ok("GET", `${path}/messages?agent_id=${agent}${query}`);
  for (const agent of agents) await inbox(agent);
  return {
    id,
    path,
    inbox,
    send: (body: object): Promise<Answer> => daemon.api("POST", `${path}/messages`, body),
    ack: (messageId: string, agent: string): Promise<Answer> =>
      daemon.api("POST", `${path}/messages/${messageId}/ack`, { agent_id: agent }),
    reply: (messageId: string, body: object): Promise<Answer> =>
      daemon.api("POST", `${path}/messages/${messageId}/reply`, body),
    message: (messageId: string): Promise<Json> => daemon.ok("GET", `${path}/messages/${messageId}`),
    presence: async (agent: string): Promise<Json> =>
      (await daemon.ok("GET", `${path}/agents`)).items.find((each: Json) => each.agent_id === agent),
  };
}

const payloads = (page: Json): unknown[] => page.items.map((item: Json) => item.payload);

describe("a message", () => {
  test("arrives at its recipient as it was sent, and reports its delivery status", async () => {
    const room = await roomOf("a", "b");
    const sent = await room.send({
      source: "a",
      destination: "b",
      payload: { deep: [1, "ü", null] },
      headers: { h: "1" },
    });
    expect(sent.status).toBe(202);
    expect(sent.body).toMatchObject({ seq: 1, state: "queued", recipient_count: 1 });
    expect(sent.body.deliveries).toEqual([{ agent_id: "b", state: "queued" }]);
    expect((await room.presence("b")).inbox_depth).toBe(1);
    const { items, next_after } = await room.inbox("b");
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({
      message_id: sent.body.message_id,
      source: "a",
      destination: "b",
      topic: null,
      kind: "event",
      payload: { deep: [1, "ü", null] },
      headers: { h: "1" },
      attempt: 1,
    });
    expect(next_after).toBe(1);
    await until(
      async () => (await room.message(sent.body.message_id)).state,
      (state) => state === "delivered",
    );
    expect((await room.ack(sent.body.message_id, "b")).body.state).toBe("acked");
    expect((await room.ack(sent.body.message_id, "b")).body.state).toBe("acked");
    expect((await room.inbox("b")).items).toEqual([]);
    expect((await room.presence("b")).inbox_depth).toBe(0);
  });

  test("with a binary payload keeps its bytes", async () => {
    const room = await roomOf("b");
    const payload_b64 = Buffer.from([0, 255, 7]).toString("base64");
    await room.send({ source: "a", destination: "b", payload_b64 });
    expect((await room.inbox("b")).items[0]).toMatchObject({ payload: null, payload_b64, size_bytes: 3 });
  });

  test("leaves the inbox once the reader's cursor is past it, and stays readable with an earlier cursor", async () => {
    const room = await roomOf("b");
    for (const payload of [1, 2, 3]) await room.send({ source: "a", destination: "b", payload });
    expect(payloads(await room.inbox("b", "&after=0&limit=2"))).toEqual([1, 2]);
    expect(payloads(await room.inbox("b", "&after=2"))).toEqual([3]);
    await until(
      async () => (await room.presence("b")).inbox_depth,
      (depth) => depth === 1,
    );
    expect(payloads(await room.inbox("b"))).toEqual([3]);
    expect(payloads(await room.inbox("b", "&after=1"))).toEqual([2, 3]);
  });

  test("can be sent to several recipients, to subscribers of a topic, or to everyone else", async () => {
    const room = await roomOf("a", "b", "c");
    const topics = (agent: string, list: string[]) =>
      daemon.ok("PUT", `${room.path}/agents/${agent}/subscriptions`, { topics: list });
    await topics("b", ["build.*"]);
    await topics("c", ["build.>", "other"]);
    const got = async (body: object) =>
      (await room.send({ source: "a", ...body })).body.deliveries.map((each: Json) => each.agent_id);
    expect(await got({ destinations: ["b", "c"] })).toEqual(["b", "c"]);
    expect(await got({ destination: "*" })).toEqual(["b", "c"]);
    expect(await got({ topic: "build.done" })).toEqual(["b", "c"]);
    expect(await got({ topic: "build.linux.done" })).toEqual(["c"]);
    expect(await got({ topic: "nobody" })).toEqual([]);
    expect(await got({ destination: "", topic: "other" })).toEqual(["c"]);
    expect(await got({ destination: null, destinations: [], topic: "build.x" })).toEqual(["b", "c"]);
    expect((await room.inbox("c", "&topic=build.>&kind=event")).items.map((item: Json) => item.topic)).toEqual([
      "build.done",
      "build.linux.done",
      "build.x",
    ]);
    const all = await daemon.ok("GET", `${room.path}/messages`);
    expect(all.items.map((item: Json) => item.seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  test("sent again with its message_id is the same message; a different one with that ID is refused", async () => {
    const room = await roomOf("b");
    const body = { source: "a", destination: "b", message_id: "m-1", payload: "x" };
    const first = await room.send(body);
    const again = await room.send(body);
    expect([first.status, again.status]).toEqual([202, 200]);
    expect(again.body).toEqual(first.body);
    const other = await room.send({ ...body, payload: "y" });
    expect({ status: other.status, code: other.body.code }).toEqual({ status: 409, code: "already_exists" });
    expect((await room.inbox("b")).items).toHaveLength(1);
    const many = await Promise.all(Array.from({ length: 50 }, () => room.send({ ...body, message_id: "m-2" })));
    expect(many.filter(({ status }) => status === 202)).toHaveLength(1);
    expect(new Set(many.map((each) => each.body.seq)).size).toBe(1);
  });

  test("that has expired is not delivered", async () => {
    const room = await roomOf("b");
    const { body } = await room.send({ source: "a", destination: "b", payload: 1, ttl_ms: 50 });
    await until(
      async () => (await room.message(body.message_id)).state,
      (state) => state === "expired",
    );
    expect((await room.inbox("b")).items).toEqual([]);
  });
});

test("a page ends at 1 MiB, reports that more exist, and has the messages as sent", async () => {
  const room = await roomOf("b");
  const COUNT = 40;
  const text = "\u0001é".repeat(8000);
  const bytes = Buffer.alloc(MAX_PAYLOAD_BYTES, 0xff).toString("base64");
  const things = [{ payload: text }, { payload_b64: bytes }, { payload: Array(20_000).fill([]) }, { payload: null }];
  for (let n = 0; n < COUNT; n++) await room.send({ source: "a", destination: "b", ...things[n % things.length] });
  const items: Json[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Json = await room.inbox("b", `&limit=1000${cursor && `&cursor=${cursor}`}`);
    const sizes: number[] = page.items.map((item: Json) => item.size_bytes);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(1024 ** 2);
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  expect(items.map(({ seq }) => seq)).toEqual(Array.from({ length: COUNT }, (_, index) => index + 1));
  for (const item of items) {
    const { payload, payload_b64, ...rest } = await room.message(item.message_id);
    expect({
      ...rest,
      isSame: isDeepStrictEqual([item.payload, item.payload_b64], [payload, payload_b64]),
    }).toMatchObject({
      ...{ isSame: true, source: item.source, created_at: item.created_at, size_bytes: item.size_bytes },
    });
  }
});

test("agents are listed page by page, and a room has a limit of topics in total", async () => {
  const room = await roomOf();
  const AGENTS = 160;
  const names = Array.from({ length: AGENTS }, (_, index) => `agent-${String(index).padStart(3, "0")}`);
  const topics = Array.from({ length: 64 }, (_, index) => `topic.${index}`);
  const statuses = new Map<number, number>();
  for (const name of names) {
    const { status, body } = await daemon.api("PUT", `${room.path}/agents/${name}/subscriptions`, { topics });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (status !== 200) expect(body.code).toBe("quota_exceeded");
  }
  // 156 times 64 are just below 10,000.
  expect([...statuses]).toEqual([
    [200, 156],
    [429, AGENTS - 156],
  ]);
  const first = await daemon.ok("GET", `${room.path}/agents?limit=100`);
  const second = await daemon.ok("GET", `${room.path}/agents?limit=100&cursor=${first.next_cursor}`);
  const seen = [...first.items, ...second.items].map((item: Json) => item.agent_id);
  expect(seen).toEqual(names.slice(0, 156));
  expect(second.next_cursor).toBeNull();
});

describe("a message that needs an ack", () => {
  test("is delivered again, past any cursor, until it is acked", async () => {
    const room = await roomOf("b");
    const { body } = await room.send({ source: "a", destination: "b", payload: 1, ack_required: true });
    expect((await room.inbox("b", "&after=0")).items).toHaveLength(1);
    expect((await room.inbox("b", `&after=${body.seq}`)).items).toEqual([]);
    const again = await room.inbox("b", `&after=${body.seq}&wait_ms=10000`);
    expect(again.items).toMatchObject([{ message_id: body.message_id, attempt: 2 }]);
    expect(again.next_after).toBe(body.seq);
    await room.ack(body.message_id, "b");
    expect((await room.inbox("b", `&after=${body.seq}&wait_ms=1500`)).items).toEqual([]);
  });

  test("is undeliverable after five more deliveries", async () => {
    const room = await roomOf("b");
    const { body } = await room.send({ source: "a", destination: "b", payload: 1, ack_required: true });
    const attempts: number[] = [];
    for (let tries = 0; tries < 6; tries++) {
      const { items } = await room.inbox("b", `&after=${tries === 0 ? 0 : body.seq}&wait_ms=10000`);
      attempts.push(items[0].attempt);
    }
    expect(attempts).toEqual([1, 2, 3, 4, 5, 6]);
    await until(
      async () => (await room.message(body.message_id)).state,
      (state) => state === "undeliverable",
    );
    expect((await room.presence("b")).inbox_depth).toBe(0);
  });
});

describe("waiting", () => {
  test("ends immediately when the message arrives", async () => {
    const room = await roomOf("b");
    const waiting = room.inbox("b", "&wait_ms=20000");
    await until(
      async () => (await room.presence("b")).waiting_on,
      (on) => on.length === 1,
    );
    const startedAt = performance.now();
    await room.send({ source: "a", destination: "b", payload: "now" });
    expect(payloads(await waiting)).toEqual(["now"]);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect((await room.presence("b")).waiting_on).toEqual([]);
  });

  test("at one inbox by two readers with different filters: each ends with its own message", async () => {
    const room = await roomOf("b");
    const waits = ["request", "response"].map((kind) => room.inbox("b", `&kind=${kind}&wait_ms=20000`));
    await until(
      async () => (await room.presence("b")).waiting_on,
      (on) => on.length === 2,
    );
    for (const kind of ["event", "request", "event", "response"]) {
      await room.send({ source: "a", destination: "b", kind, payload: kind });
    }
    expect((await Promise.all(waits)).map(payloads)).toEqual([["request"], ["response"]]);
  });

  test("ends empty at its deadline", async () => {
    const room = await roomOf("b");
    expect((await room.inbox("b", "&wait_ms=50")).items).toEqual([]);
  });

  test("ends immediately, with a typed error, when the room is destroyed", async () => {
    const room = await roomOf("b", "c");
    const waits = [
      daemon.api("GET", `${room.path}/messages?agent_id=b&wait_ms=40000`),
      daemon.api("GET", `${room.path}/messages?wait_ms=40000`),
      room.send({ source: "b", destination: "c", wait_reply: true, timeout_ms: 40_000 }),
    ];
    // The request is a message of the room: it ends the second wait with an answer.
    expect((await waits[1])?.body.items).toHaveLength(1);
    await until(
      async () => (await room.presence("b")).waiting_on.length,
      (waiting) => waiting === 2,
    );
    await daemon.ok("DELETE", room.path);
    for (const wait of [waits[0], waits[2]]) {
      expect((await wait)?.body).toMatchObject({ status: 409, code: "room_destroying" });
    }
  });
});

describe("a request", () => {
  test("is answered by the reply, which is removed from the inbox", async () => {
    const room = await roomOf("a", "b");
    const request = room.send({ source: "a", destination: "b", payload: "?", wait_reply: true, timeout_ms: 20_000 });
    const { items } = await room.inbox("b", "&wait_ms=20000");
    expect(items[0]).toMatchObject({ kind: "request", payload: "?" });
    expect((await room.presence("a")).waiting_on).toEqual([{ type: "reply", id: items[0].message_id }]);
    const replied = await room.reply(items[0].message_id, { source: "b", payload: "!" });
    expect(replied.status).toBe(202);
    const { status, body } = await request;
    expect(status).toBe(200);
    expect(body).toMatchObject({
      state: "acked",
      reply: { kind: "response", payload: "!", reply_to: items[0].message_id },
    });
    expect((await room.inbox("a")).items).toEqual([]);
    expect((await room.inbox("b")).items).toEqual([]);
  });

  test("is not answered by its recipient's messages to others", async () => {
    const room = await roomOf("a", "b", "c");
    const request = room.send({ source: "a", destination: "b", message_id: "q", wait_reply: true, timeout_ms: 20_000 });
    await room.inbox("b", "&wait_ms=20000");
    await room.send({ source: "b", destination: "c", kind: "response", reply_to: "q", payload: "for c" });
    await room.send({ source: "c", destination: "a", kind: "response", reply_to: "q", payload: "from c" });
    await room.reply("q", { source: "b", payload: "for a" });
    expect((await request).body.reply.payload).toBe("for a");
  });

  test("times out without an answer, and a late reply is delivered to the inbox", async () => {
    const room = await roomOf("a", "b");
    const body = { source: "a", destination: "b", message_id: "ask", wait_reply: true, timeout_ms: 50 };
    const late = await room.send(body);
    expect(late.body).toMatchObject({
      status: 504,
      code: "reply_timeout",
      retryable: true,
      details: { message_id: "ask" },
    });
    await room.reply("ask", { source: "b", payload: 42 });
    expect(payloads(await room.inbox("a"))).toEqual([42]);
    // The same request again waits on, and finds it.
    expect((await room.send({ ...body, timeout_ms: 5000 })).body.reply.payload).toBe(42);
  });

  test("closes no cycle once its reply has arrived, even if the replier waits for the source by then", async () => {
    const room = await roomOf("a", "b");
    const body = { source: "a", destination: "b", message_id: "ask", wait_reply: true, timeout_ms: 50 };
    expect((await room.send(body)).body.code).toBe("reply_timeout");
    await room.reply("ask", { source: "b", payload: 42 });
    const meets = { participants: ["a", "b"], timeout_ms: 20_000 };
    const arrive = (agent_id: string) =>
      daemon.api("POST", `${room.path}/barriers`, { barrier_id: "done", agent_id, ...meets });
    const arrived = arrive("b");
    await until(
      async () => (await room.presence("b")).waiting_on,
      (on) => on.length === 1,
    );
    expect((await room.send({ ...body, timeout_ms: 5000 })).body).toMatchObject({ reply: { payload: 42 } });
    expect((await arrive("a")).body.state).toBe("released");
    expect((await arrived).body.state).toBe("released");
  });

  test("that would close a cycle is refused with the agents of the cycle", async () => {
    const room = await roomOf("a", "b", "c");
    const ask = (source: string, destination: string, timeout_ms: number) =>
      room.send({ source, destination, wait_reply: true, timeout_ms });
    const waits = [ask("a", "b", 3000), ask("b", "c", 3000)];
    for (const agent of ["a", "b"]) {
      await until(
        async () => (await room.presence(agent)).waiting_on,
        (on) => on.length === 1,
      );
    }
    const refused = await ask("c", "a", 3000);
    expect(refused.body).toMatchObject({
      status: 409,
      code: "deadlock_detected",
      details: { cycle: ["c", "a", "b", "c"] },
    });
    // It was not sent.
    expect((await room.inbox("a")).items).toEqual([]);
    expect((await ask("c", "c", 50)).body.code).toBe("deadlock_detected");
    for (const wait of waits) expect((await wait).body.code).toBe("reply_timeout");
    expect((await ask("c", "a", 50)).body.code).toBe("reply_timeout");
  });
});

describe("refuses", () => {
  test("an unknown recipient", async () => {
    const room = await roomOf("b");
    const { body } = await room.send({ source: "a", destinations: ["b", "nobody"] });
    expect(body).toMatchObject({ status: 404, code: "agent_not_found", details: { agent_id: "nobody" } });
    expect(body.hint).toMatch(/\bb\b/);
    expect((await room.inbox("b")).items).toEqual([]);
    // A refused sender does not become a participant.
    expect(await room.presence("a")).toBeUndefined();
  });

  test("a payload over 64 KiB, with an alternative", async () => {
    const room = await roomOf("b");
    const of = (bytes: number) => ({ source: "a", destination: "b", payload: "x".repeat(bytes - 2) });
    expect((await room.send(of(MAX_PAYLOAD_BYTES))).status).toBe(202);
    const large = await room.send(of(MAX_PAYLOAD_BYTES + 1));
    expect(large.body).toMatchObject({ status: 413, code: "payload_too_large", hint: expect.stringMatching(/drive/) });
  });

  test("a message to a full inbox, for each kind of recipient", async () => {
    const room = await roomOf("b", "c");
    for (let sent = 0; sent < MAX_INBOX; sent += 50) {
      const some = Array.from({ length: 50 }, () => room.send({ source: "a", destination: "b" }));
      expect((await Promise.all(some)).map(({ status }) => status)).toEqual(some.map(() => 202));
    }
    const full = await room.send({ source: "a", destinations: ["c", "b"] });
    expect(full.body).toMatchObject({ status: 429, code: "inbox_full", details: { agents: ["b"], limit: MAX_INBOX } });
    expect(full.headers.get("retry-after")).toBe("1");
    expect((await room.inbox("c")).items).toEqual([]);
    await room.inbox("b", "&after=1");
    await until(
      async () => (await room.send({ source: "a", destination: "b" })).status,
      (status) => status === 202,
    );
  });

  test.each([
    [{}, "validation_failed", "destination"],
    [{ destination: "b", topic: "t" }, "conflicting_fields", "topic"],
    [{ destination: "b", payload: 1, payload_b64: "AA==" }, "conflicting_fields", "payload_b64"],
    [{ destination: "b", payload_b64: "?" }, "validation_failed", "payload_b64"],
    [{ destination: "sbx_1" }, "validation_failed", "destination"],
    [{ destination: "b", destinations: ["b", "c", "b"] }, "validation_failed", "destinations"],
    [{ topic: "a..b" }, "validation_failed", "topic"],
    [{ topic: "t", wait_reply: true }, "validation_failed", "wait_reply"],
    [{ destination: "b", timeout_ms: 300_001 }, "timeout_out_of_range", "timeout_ms"],
    [{ destination: "b", headers: { h: "x".repeat(5000) } }, "validation_failed", "headers"],
    [{ destination: "b", source: undefined }, "validation_failed", "source"],
  ])("%j", async (body, code, field) => {
    const room = await roomOf("b");
    const refused = await room.send({ source: "a", ...body });
    expect(refused.body).toMatchObject({ status: 422, code, errors: [{ field }] });
  });

  test("a reply or an ack by an agent that is not a recipient", async () => {
    const room = await roomOf("b", "c");
    const { body } = await room.send({ source: "a", destination: "b" });
    expect((await room.reply(body.message_id, { source: "c" })).body.code).toBe("source_mismatch");
    expect((await room.ack(body.message_id, "c")).body.code).toBe("source_mismatch");
    expect((await room.ack("none", "b")).body.code).toBe("message_not_found");
  });
});

test("accepted messages and agents survive a kill of the daemon", async () => {
  const room = await roomOf("b");
  await daemon.ok("PUT", `${room.path}/agents/b/subscriptions`, { topics: ["t"] });
  for (const payload of [1, 2]) await room.send({ source: "a", destination: "b", payload });
  await daemon.restart("SIGKILL");
  expect(payloads(await room.inbox("b"))).toEqual([1, 2]);
  expect((await room.send({ source: "c", topic: "t" })).body).toMatchObject({ seq: 3, recipient_count: 1 });
  expect((await room.send({ source: "b", destination: "a" })).status).toBe(202);
});

test("an audit record has sender, recipients and size, but not the payload", async () => {
  const room = await roomOf("b");
  const { body } = await room.send({ source: "a", destination: "b", payload: "secret" });
  const { items } = await daemon.ok("GET", `${room.path}/audit?event=message.sent`);
  expect(items[0]).toMatchObject({
    agent_id: "a",
    details: { message_id: body.message_id, seq: 1, destination: "b", size_bytes: 8, kind: "event", recipients: 1 },
  });
  expect(items[0].details.payload_sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(JSON.stringify(items)).not.toContain("secret");
});

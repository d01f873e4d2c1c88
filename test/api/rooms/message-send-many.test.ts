/** Many messages in one call: as if sent one after another, all of them or none. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import {
  MAX_BATCH,
  MAX_BATCH_RECIPIENTS,
  MAX_BATCH_TOPICS,
  MAX_INBOX,
  MAX_PAYLOAD_BYTES,
} from "../../../shared/api/fabric.ts";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey, makeOrg, run } from "../calls.ts";

let daemon: TestDaemon;
let count = 0;
beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

/** A separate room in which these agents are known. */
async function roomOf(...agents: string[]) {
  const id = `many-${++count}`;
  await daemon.room(id);
  const path = `/v1/rooms/${id}`;
  const inbox = async (agent: string, query = ""): Promise<Json> =>
    await daemon.ok("GET", `${path}/messages?agent_id=${agent}${query}`);
  for (const agent of agents) await inbox(agent);
  return {
    id,
    path,
    inbox,
    send: (messages: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
      daemon.api("POST", `${path}/messages/batch`, { messages }, headers),
    all: async (): Promise<Json[]> => (await daemon.ok("GET", `${path}/messages?limit=1000`)).items,
    records: async (): Promise<Json[]> =>
      (await daemon.ok("GET", `${path}/audit?event=message.sent&order=asc&limit=1000`)).items,
  };
}
type Room = Awaited<ReturnType<typeof roomOf>>;

const to = (destination: string, more: object = {}) => ({ source: "a", destination, ...more });
const fieldsOf = ({ body }: Answer): string[] => body.errors.map(({ field, code }: Json) => `${field}: ${code}`);
const payloads = ({ items }: Json): unknown[] => items.map(({ payload }: Json) => payload);

/** Nothing of it is there. */
async function expectNone(room: Room, answer: Answer, code: string, index?: number): Promise<void> {
  expect(answer.body).toMatchObject({ code, ...(index === undefined ? {} : { details: { index } }) });
  if (index !== undefined) expect(answer.body.detail).toMatch(new RegExp(`^messages\\[${index}\\]: `));
  expect(await room.all()).toEqual([]);
}

describe("a batch of messages", () => {
  test("arrives in order, each message as if sent alone", async () => {
    const room = await roomOf("a", "b", "c");
    await daemon.ok("PUT", `${room.path}/agents/c/subscriptions`, { topics: ["build.*"] });
    const batch = [
      to("b", { payload: { n: 1 }, headers: { h: "1" }, message_id: "asked", kind: "request" }),
      { source: "b", destinations: ["a", "c"], payload: "two" },
      { source: "a", topic: "build.done", payload: null },
      { source: "c", destination: "*", payload_b64: "aGk=", ack_required: true, ttl_ms: 60_000 },
      { source: "b", destination: "a", reply_to: "asked", payload: "yes" },
    ];
    const sent = await room.send(batch);
    expect(sent.status).toBe(202);
    const one = await roomOf("a", "b", "c");
    await daemon.ok("PUT", `${one.path}/agents/c/subscriptions`, { topics: ["build.*"] });
    const singles = [];
    for (const message of batch) singles.push(await daemon.ok("POST", `${one.path}/messages`, message));
    const shape = ({ message_id: _, created_at, expires_at, reply, ...rest }: Json) => rest;
    expect(sent.body.messages.map(shape)).toEqual(singles.map(shape));
    expect((await room.all()).map(shape)).toEqual((await one.all()).map(shape));
    for (const agent of ["a", "b", "c"]) {
      expect((await room.inbox(agent)).items.map(shape)).toEqual((await one.inbox(agent)).items.map(shape));
    }
    const waits = (id: string) => daemon.ok("GET", `/v1/rooms/${id}/agents`);
    const seen = ({ items }: Json) => items.map(({ last_seen_at: _, ...agent }: Json) => agent);
    expect(seen(await waits(room.id))).toEqual(seen(await waits(one.id)));
    const usage = await daemon.ok("GET", "/v1/orgs/self/usage?group_by=room");
    const messages = (id: string) => usage.groups.find(({ name }: Json) => name === id)?.totals.messages;
    expect(messages(room.id)).toBe(batch.length);
    expect(messages(room.id)).toBe(messages(one.id));
  });

  test("has one audit record per message in one chain, equal to that of a single message", async () => {
    const room = await roomOf("a", "b");
    const { body } = await room.send([to("b", { payload: 1 }), { source: "b", destination: "a", payload: 2 }, to("*")]);
    const records = await room.records();
    expect(records.map(({ details }) => details.message_id)).toEqual(
      body.messages.map((each: Json) => each.message_id),
    );
    expect(new Set(records.map(({ request_id }) => request_id)).size).toBe(1);
    for (const record of records) expect(record).toMatchObject({ outcome: "success", status: 202, room_id: room.id });
    const single = await roomOf("a", "b");
    for (const message of [to("b", { payload: 1 }), { source: "b", destination: "a", payload: 2 }, to("*")]) {
      await daemon.ok("POST", `${single.path}/messages`, message);
    }
    const summary = ({ agent_id, details: { message_id: _, ...details } }: Json) => ({ agent_id, details });
    expect(records.map(summary)).toEqual((await single.records()).map(summary));
    expect(await daemon.ok("GET", `${room.path}/audit/verify`)).toMatchObject({ ok: true });
    expect(await daemon.ok("GET", "/v1/orgs/self/audit/verify")).toMatchObject({ ok: true });
  });

  test("wakes its waiting recipients with all their messages", async () => {
    const room = await roomOf("b");
    const waiting = ["b", "c"].map((agent) => room.inbox(agent, "&wait_ms=20000"));
    const isWaiting = async () => (await daemon.ok("GET", `${room.path}/agents`)).items;
    while ((await isWaiting()).filter(({ waiting_on }: Json) => waiting_on.length > 0).length < 2) await Bun.sleep(10);
    await room.send([to("b", { payload: 1 }), to("c", { payload: 2 }), to("b", { payload: 3 })]);
    expect((await Promise.all(waiting)).map(payloads)).toEqual([[1, 3], [2]]);
  });

  test("may address an earlier sender, reply to an earlier message, and repeat one", async () => {
    const room = await roomOf("a");
    const sent = await room.send([
      { source: "stranger", destination: "a", message_id: "m", payload: 1 },
      to("stranger", { reply_to: "m", payload: 2 }),
      to("*", { payload: 3 }),
      { source: "stranger", destination: "a", message_id: "m", payload: 1 },
    ]);
    expect(sent.status).toBe(202);
    expect(sent.body.messages.map(({ seq }: Json) => seq)).toEqual([1, 2, 3, 1]);
    expect(payloads(await room.inbox("stranger"))).toEqual([2, 3]);
    const again = await room.send([{ source: "stranger", destination: "a", message_id: "m", payload: 1 }]);
    expect(again).toMatchObject({ status: 200, body: { messages: [{ message_id: "m", seq: 1 }] } });
    expect((await room.records()).map(({ details }) => details.seq)).toEqual([1, 2, 3, 1, 1]);
  });

  test("does not hide a message whose ID is the name of the path", async () => {
    const room = await roomOf("a", "b");
    await room.send([to("b", { message_id: "batch", payload: 7 })]);
    expect(await daemon.ok("GET", `${room.path}/messages/batch`)).toMatchObject({ message_id: "batch", payload: 7 });
    expect((await daemon.api("PUT", `${room.path}/messages/batch`, {})).status).toBe(405);
  });

  test("is sent by the command line, one message per line", async () => {
    const room = await roomOf("b");
    const lines = Array.from({ length: 2 * MAX_BATCH + 1 }, (_, n) => JSON.stringify({ destination: "b", payload: n }));
    const { status, stdout } = await daemon.cli(["message", "send", room.id, "-", "--from", "a"], lines.join("\n\n"));
    expect([status, Number.parseInt(stdout, 10)]).toEqual([0, lines.length]);
    expect(payloads(await room.inbox("b", "&limit=1000"))).toEqual(lines.map((_, n) => n));
    const late = [...lines.slice(0, MAX_BATCH), '{"destination": "nobody-here"}'];
    const half = await daemon.cli(["message", "send", room.id, "-", "--from", "half"], late.join("\n"));
    expect(half).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(` ${MAX_BATCH} `),
    });
    const refused = await daemon.cli(["message", "send", room.id, "-"], '{"destination": "b"}\n[]\n');
    expect(refused).toMatchObject({ status: 2, stderr: expect.stringMatching(/\bline 2\b/i) });
    expect(await run(daemon, "message", "list", room.id, "--from", "operator")).toMatchObject({ items: [] });
  });
});

describe("the refusal", () => {
  test("names every invalid field of every message", async () => {
    const room = await roomOf("a", "b");
    const answer = await room.send([
      to("b"),
      { source: "!", destination: "b", extra: 1, paylod: 1 },
      to("b", { topic: "t" }),
      7,
      to("not a name", { payload: 1, payload_b64: "?" }),
      { source: "a" },
      { source: "a", destinations: ["b", "b"] },
      { source: "a", destinations: ["b", "!"], ttl_ms: 0 },
      to("b", { wait_reply: true }),
    ]);
    expect(answer.status).toBe(422);
    expect(fieldsOf(answer).sort()).toEqual([
      "messages[1].extra: unknown_field",
      "messages[1].paylod: unknown_field",
      "messages[1].source: pattern",
      "messages[2].topic: conflicting_fields",
      "messages[3]: wrong_type",
      "messages[4].destination: pattern",
      "messages[4].payload_b64: base64",
      "messages[4].payload_b64: conflicting_fields",
      "messages[5].destination: required",
      "messages[6].destinations: repeated",
      "messages[7].destinations: wrong_type",
      "messages[7].ttl_ms: out_of_range",
      "messages[8].wait_reply: unknown_field",
    ]);
    const mistyped = answer.body.errors.find(({ field }: Json) => field === "messages[1].paylod");
    expect(mistyped.message).toContain("messages[1].payload");
    await expectNone(room, answer, "validation_failed");
    const unnamed = await room.send([{ destination: "b" }, to("b"), { destination: "a" }]);
    expect(fieldsOf(unnamed)).toEqual(["messages[0].source: required", "messages[2].source: required"]);
    const each = await room.send(Array(MAX_BATCH).fill({ source: "a", destination: "b", ttl_ms: "soon" }));
    expect(each.body.errors).toHaveLength(MAX_BATCH);
  });

  test("covers no messages, too many, too many bytes, and too many topics or recipients", async () => {
    const room = await roomOf("a", "b");
    expect(fieldsOf(await room.send([]))).toEqual(["messages: length"]);
    expect(fieldsOf(await room.send(undefined))).toEqual(["messages: required"]);
    expect(fieldsOf(await room.send({}))).toEqual(["messages: wrong_type"]);
    expect(fieldsOf(await room.send(Array(MAX_BATCH + 1).fill(to("b"))))).toEqual(["messages: length"]);
    const large = { payload: "x".repeat(MAX_PAYLOAD_BYTES - 2) };
    expect((await room.send(Array(17).fill(to("b", large)))).body.code).toBe("body_too_large");
    const topics = Array.from({ length: MAX_BATCH_TOPICS + 1 }, (_, n) => ({ source: "a", topic: `t.${n}` }));
    expect(fieldsOf(await room.send(topics))).toEqual(["messages: too_many_topics"]);
    await expectNone(
      room,
      await room.send([to("b"), to("b", { payload: `${large.payload}y` })]),
      "payload_too_large",
      1,
    );
    expect((await room.send(Array(15).fill(to("b", large)))).status).toBe(202);

    const crowd = Array.from({ length: 500 }, (_, n) => `w${n}`);
    const full = await roomOf();
    for (let n = 0; n < crowd.length; n += 250) {
      await full.send(crowd.slice(n, n + 250).map((source) => ({ source, destination: source })));
    }
    const most = MAX_BATCH_RECIPIENTS / crowd.length;
    const everybody = { source: "w0", destinations: crowd };
    expect(fieldsOf(await full.send(Array(most + 1).fill(everybody)))).toEqual(["messages: too_many_recipients"]);
    expect((await full.send(Array(most).fill(everybody))).status).toBe(202);
  });

  test("of one message refuses the batch: recipient, reply_to, message_id, sender, or full inbox", async () => {
    const room = await roomOf("a", "b");
    await expectNone(room, await room.send([to("b"), to("nobody")]), "agent_not_found", 1);
    await expectNone(room, await room.send([to("b"), to("b", { reply_to: "none" })]), "message_not_found", 1);
    const named = [to("b", { message_id: "m", payload: 1 }), to("b"), to("b", { message_id: "m", payload: 2 })];
    await expectNone(room, await room.send(named), "already_exists", 2);
    const { key } = await makeKey(daemon, { agent: "a" });
    const other = [{ destination: "b" }, to("b"), { source: "b", destination: "a" }];
    await expectNone(room, await room.send(other, bearer(key)), "source_mismatch", 2);
    const [failed] = (await room.records()).slice(-1);
    expect(failed).toMatchObject({ outcome: "denied", details: { messages: 3 } });
    expect((await room.send([{ destination: "b", payload: "own" }], bearer(key))).status).toBe(202);

    // Rolled back messages are not counted.
    const full = await roomOf("b");
    for (let sent = 0; sent < MAX_INBOX - 8; sent += 248) await full.send(Array(248).fill(to("b")));
    expect((await full.send(Array(9).fill(to("b")))).body).toMatchObject({ code: "inbox_full", details: { index: 8 } });
    expect((await full.send(Array(8).fill(to("b")))).body.messages.at(-1).seq).toBe(MAX_INBOX);
    expect((await full.send([to("b")])).body.code).toBe("inbox_full");
  });

  test("covers a room of another organization and an unknown room", async () => {
    const room = await roomOf("a", "b");
    const { api_key } = await makeOrg(daemon, "others");
    const foreign = await room.send([to("b")], bearer(api_key));
    const none = await daemon.api("POST", "/v1/rooms/none/messages/batch", { messages: [to("b")] });
    expect([foreign, none].map(({ status, body }) => [status, body.code])).toEqual(
      Array(2).fill([404, "room_not_found"]),
    );
    const { key } = await makeKey(daemon, { scopes: ["fabric:read"] });
    expect((await room.send([to("b")], bearer(key))).body.code).toBe("insufficient_scope");
    expect(await room.all()).toEqual([]);
  });
});

describe("with an Idempotency-Key", () => {
  test("the repeated call gets the first answer, and sends nothing; a different one is refused", async () => {
    const room = await roomOf("a", "b");
    const once = { "idempotency-key": "batch-1" };
    const first = await room.send([to("b", { payload: 1 }), to("b", { payload: 2 })], once);
    const again = await room.send([to("b", { payload: 1 }), to("b", { payload: 2 })], once);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect([again.status, again.body]).toEqual([first.status, first.body]);
    expect((await room.send([to("b", { payload: 1 })], once)).body.code).toBe("idempotency_key_reused");
    expect(payloads(await room.inbox("b"))).toEqual([1, 2]);
  });
});

describe("a killed daemon", () => {
  const messages = Array.from({ length: 32 }, (_, payload) => to("a", { payload }));

  test("has all messages and their records after the answer", async () => {
    await using own = await TestDaemon.start();
    await own.room("r");
    const send = () => own.api("POST", "/v1/rooms/r/messages/batch", { messages });
    expect((await send()).status).toBe(202);
    await own.restart("SIGKILL");
    expect(payloads(await own.ok("GET", "/v1/rooms/r/messages?agent_id=a"))).toEqual(
      messages.map(({ payload }: Json) => payload),
    );
    expect((await own.ok("GET", "/v1/rooms/r/audit?event=message.sent")).items).toHaveLength(messages.length);
    expect((await send()).body.messages[0].seq).toBe(messages.length + 1);
    expect(await own.ok("GET", "/v1/orgs/self/audit/verify")).toMatchObject({ ok: true });
  });

  test("has no message before the commit; the repeated call sends each once", async () => {
    await using own = await TestDaemon.start();
    const send = () => own.api("POST", "/v1/rooms/r/messages/batch", { messages }, { "idempotency-key": "one" });
    await own.room("r");
    own.env[FAULT_VARIABLE] = "audit.recorded=kill";
    await own.restart("SIGTERM");
    await expect(send()).rejects.toThrow();
    delete own.env[FAULT_VARIABLE];
    await own.restart("SIGKILL");
    expect((await own.ok("GET", "/v1/rooms/r/messages")).items).toEqual([]);
    const [first, again] = [await send(), await send()];
    expect([first.status, again.body]).toEqual([202, first.body]);
    expect((await own.ok("GET", "/v1/rooms/r/messages")).items).toHaveLength(messages.length);
    expect((await own.ok("GET", "/v1/rooms/r/audit?event=message.sent&limit=1000")).items).toHaveLength(
      messages.length + 1,
    );
  });
});

test("each message counts toward the key's rate, and a rejected batch consumes nothing", async () => {
  const AT_ONCE = 40;
  const env = { ROOMD_LIMITS_REQUESTS_PER_SECOND: "10", ROOMD_LIMITS_REQUESTS_AT_ONCE: String(AT_ONCE) };
  await using slow = await TestDaemon.start({ env });
  await slow.room("r");
  const { key } = await makeKey(slow);
  const send = (many: number) =>
    slow.api("POST", "/v1/rooms/r/messages/batch", { messages: Array(many).fill(to("a")) }, bearer(key));
  const left = ({ headers }: Answer) => Number(headers.get("ratelimit-remaining"));
  const first = await send(30);
  expect(first.status).toBe(202);
  expect(left(first)).toBeGreaterThanOrEqual(AT_ONCE - 30);
  expect(left(first)).toBeLessThanOrEqual(AT_ONCE - 28);
  const refused = await send(30);
  expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited", retryable: true } });
  expect(Number(refused.headers.get("retry-after"))).toBe(2);
  expect(left(refused)).toBeGreaterThanOrEqual(left(first));
  await Bun.sleep(1000 * Number(refused.headers.get("retry-after")));
  const late = await send(30);
  expect(late.status).toBe(202);
  // More than a full bucket has is let through by a full one, and owed.
  await Bun.sleep(1000 * Number(late.headers.get("ratelimit-reset")));
  const large = await send(60);
  expect([large.status, left(large)]).toEqual([202, 0]);
  expect(Number(large.headers.get("ratelimit-reset"))).toBeGreaterThan(4);
  expect((await slow.api("GET", "/v1/me", undefined, bearer(key))).status).toBe(429);
  const { items } = await slow.ok("GET", "/v1/rooms/r/messages?limit=1000");
  expect(items).toHaveLength(120);
}, 30_000);

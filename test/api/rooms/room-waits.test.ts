/** Waits between agents, on a daemon without guests: every kind of wait, combined and in cycles. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer, makeKey, makeOrg, until } from "../calls.ts";

let daemon: TestDaemon;
let count = 0;

beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

/** A separate room in which these agents are known. */
async function roomOf(...agents: string[]) {
  const id = `waits-${++count}`;
  await daemon.room(id);
  const path = `/v1/rooms/${id}`;
  for (const agent of agents) await daemon.ok("GET", `${path}/messages?agent_id=${agent}`);
  const waits = (): Promise<Json> => daemon.ok("GET", `${path}/waits`);
  return {
    id,
    path,
    waits,
    /** Resolves once there are `waitCount` waits. */
    counted: (waitCount: number): Promise<Json> => until(waits, (seen: Json) => seen.waits.length === waitCount),
    send: (body: object): Promise<Answer> => daemon.api("POST", `${path}/messages`, { payload: 1, ...body }),
    ask: async (source: string, destination: string): Promise<string> =>
      (await daemon.ok("POST", `${path}/messages`, { source, destination, kind: "request", payload: 1 })).message_id,
    reply: (id: string, source: string): Promise<Json> =>
      daemon.ok("POST", `${path}/messages/${id}/reply`, { source, payload: 1 }),
    arrive: (agent_id: string, body: object): Promise<Answer> =>
      daemon.api("POST", `${path}/barriers`, { barrier_id: "merged", agent_id, timeout_ms: 0, ...body }),
  };
}

describe("a wait without a call", () => {
  test("is listed for a request until it is answered", async () => {
    const room = await roomOf("planner", "worker");
    expect(await room.waits()).toMatchObject({ waits: [], cycles: [], truncated: false });
    const id = await room.ask("planner", "worker");
    const message = await daemon.ok("GET", `${room.path}/messages/${id}`);
    expect(await room.waits()).toMatchObject({
      room_id: room.id,
      waits: [
        {
          agent_id: "planner",
          type: "reply",
          id,
          on: ["worker"],
          since: message.created_at,
          held: false,
          about: "request",
        },
      ],
      cycles: [],
    });
    await daemon.ok("POST", `${room.path}/messages/${id}/ack`, { agent_id: "worker" });
    expect((await room.waits()).waits).toHaveLength(1);
    await room.reply(id, "worker");
    expect((await room.waits()).waits).toEqual([]);
  });

  test("is for a reply of each recipient, or of the first of a topic; of none once the request has expired", async () => {
    const room = await roomOf("a", "b", "c");
    const { message_id } = (await room.send({ source: "a", destinations: ["b", "c"], kind: "request" })).body;
    expect((await room.waits()).waits[0].on).toEqual(["b", "c"]);
    // A response from an agent that is not a recipient does not count, and neither does an event.
    await room.send({ source: "x", destination: "a", kind: "response", reply_to: message_id });
    await room.send({ source: "b", destination: "a", kind: "event", reply_to: message_id });
    expect((await room.waits()).waits[0].on).toEqual(["b", "c"]);
    await room.send({ source: "b", destination: "a", kind: "response", reply_to: message_id });
    expect((await room.waits()).waits[0].on).toEqual(["c"]);
    await room.reply(message_id, "c");
    expect((await room.waits()).waits).toEqual([]);

    for (const agent of ["b", "c"]) {
      await daemon.ok("PUT", `${room.path}/agents/${agent}/subscriptions`, { topics: ["jobs"] });
    }
    const job = (await room.send({ source: "a", topic: "jobs", kind: "request" })).body;
    expect((await room.waits()).waits).toMatchObject([{ on: ["b", "c"], about: expect.stringContaining("jobs") }]);
    await room.reply(job.message_id, "c");
    expect((await room.waits()).waits).toEqual([]);

    await room.send({ source: "a", destination: "b", kind: "request", ttl_ms: 50 });
    await room.counted(0);
  });

  test("is for the missing agents of a barrier: participants, or all agents of the room", async () => {
    const room = await roomOf("a", "b", "c");
    expect((await room.arrive("a", { participants: ["a", "b"] })).status).toBe(202);
    const opened = (await daemon.ok("GET", `${room.path}/barriers/merged`)).opened_at;
    expect((await room.waits()).waits).toEqual([
      {
        agent_id: "a",
        type: "barrier",
        id: "merged",
        on: ["b"],
        since: opened,
        held: false,
        about: expect.stringContaining("1 of 2"),
      },
    ]);
    await room.arrive("b", {});
    expect((await room.waits()).waits).toEqual([]);
    await room.arrive("b", { barrier_id: "any", parties: 2 });
    expect((await room.waits()).waits).toMatchObject([{ agent_id: "b", on: ["a", "c"] }]);
    await daemon.ok("DELETE", `${room.path}/barriers/any`);
    expect((await room.waits()).waits).toEqual([]);
  });
});

describe("a waiting call", () => {
  test("is merged with the wait of its request, marked as held, with the age of the older one", async () => {
    const room = await roomOf("a", "b", "c");
    const reading = daemon.api("GET", `${room.path}/messages?agent_id=c&wait_ms=20000`);
    expect((await room.counted(1)).waits).toMatchObject([
      { agent_id: "c", type: "inbox", id: null, on: [], held: true, about: "messages" },
    ]);
    const asking = room.send({ source: "a", destination: "b", message_id: "q", wait_reply: true, timeout_ms: 20_000 });
    const { waits } = await room.counted(2);
    expect(waits[1]).toMatchObject({ agent_id: "a", type: "reply", id: "q", on: ["b"], held: true });
    expect(waits[1].since <= (await daemon.ok("GET", `${room.path}/messages/q`)).created_at).toBe(true);
    await room.arrive("b", { participants: ["b", "c"] });
    const arriving = room.arrive("b", { timeout_ms: 20_000 });
    const held = await until(room.waits, (seen: Json) => seen.waits.every((each: Json) => each.held));
    expect(held.waits[2]).toMatchObject({ agent_id: "b", type: "barrier", id: "merged", on: ["c"] });
    await room.send({ source: "b", destination: "c" });
    await room.reply("q", "b");
    await room.arrive("c", {});
    expect((await Promise.all([reading, asking, arriving])).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await room.waits()).waits).toEqual([]);
  });

  test("is no longer listed after its timeout, but its request is", async () => {
    const room = await roomOf("a", "b");
    const response = await room.send({
      source: "a",
      destination: "b",
      message_id: "q",
      wait_reply: true,
      timeout_ms: 50,
    });
    expect(response.body.code).toBe("reply_timeout");
    expect((await room.waits()).waits).toMatchObject([{ agent_id: "a", id: "q", held: false }]);
  });
});

describe("a cycle", () => {
  test("is two agents that wait for each other's reply, in one sentence; a reply ends it", async () => {
    const room = await roomOf("planner", "worker");
    const ids = [await room.ask("planner", "worker"), await room.ask("worker", "planner")];
    const { cycles, text } = await room.waits();
    expect(cycles).toHaveLength(1);
    expect(cycles[0].agents).toEqual(["planner", "worker"]);
    expect(cycles[0].text).toMatch(
      new RegExp(
        `^planner waits for worker \\(reply to ${ids[0]}, \\d+ s\\), worker waits for planner \\(reply to ${ids[1]}, \\d+ s\\)\\.$`,
      ),
    );
    expect(text).toContain(cycles[0].text);
    await room.reply(String(ids[0]), "worker");
    expect(await room.waits()).toMatchObject({ waits: [{ agent_id: "worker" }], cycles: [] });
  });

  test("can consist of different kinds of waits", async () => {
    const room = await roomOf("a", "b", "c");
    await room.ask("a", "b");
    await room.arrive("b", { participants: ["b", "c"] });
    const asking = room.send({ source: "c", destination: "a", wait_reply: true, message_id: "q", timeout_ms: 20_000 });
    const { cycles } = await until(room.waits, (seen: Json) => seen.cycles.length > 0);
    expect(cycles.map(({ agents }: Json) => agents)).toEqual([["a", "b", "c"]]);
    expect(cycles[0].text).toMatch(/\bb\b.* c .*\bmerged\b/);
    await room.reply("q", "a");
    expect((await asking).status).toBe(200);
    expect((await room.waits()).cycles).toEqual([]);
  });

  test("does not exist if one of several agents suffices", async () => {
    const room = await roomOf("a", "b", "c");
    await room.arrive("a", { parties: 2 });
    await room.ask("b", "a");
    expect(await room.waits()).toMatchObject({ waits: [{ on: ["b", "c"] }, { on: ["a"] }], cycles: [] });
  });
});

test("at most a thousand waits are listed, the oldest first, and the list is marked as truncated", async () => {
  const room = await roomOf("b", "c");
  const ids: string[] = [];
  for (let sent = 0; sent < 1002; sent += 2) {
    ids.push(...(await Promise.all([room.ask("a", "b"), room.ask("a", "c")])));
  }
  const { waits, truncated, text } = await room.waits();
  expect([waits.length, truncated]).toEqual([1000, true]);
  expect(waits[0].since <= waits[999].since).toBe(true);
  expect(waits.map(({ id }: Json) => id)).toEqual(expect.arrayContaining(ids.slice(0, 998)));
  expect(text).toMatch(/^1000 /);
  await Promise.all(ids.slice(0, 2).map(async (id, at) => await room.reply(id, ["b", "c"][at] ?? "")));
  expect(await room.waits()).toMatchObject({ truncated: false });
});

test("many waits at barriers are truncated likewise, each with some of the awaited agents", async () => {
  const room = await roomOf();
  for (const barrier_id of ["first", "second"]) {
    const arrivals = Array.from({ length: 600 }, (_, at) => `${barrier_id}-${at}`);
    await daemon.ok("POST", `${room.path}/barriers`, { barrier_id, arrivals, parties: 1000, timeout_ms: 0 });
  }
  const { waits, truncated, cycles } = await room.waits();
  expect([waits.length, truncated, cycles]).toEqual([1000, true, []]);
  expect(waits.filter(({ id }: Json) => id === "first")).toHaveLength(600);
  expect(new Set(waits.map(({ on }: Json) => on.length))).toEqual(new Set([100]));
});

test("an agent's key sees that agent's waits, and those for it", async () => {
  const room = await roomOf("a", "b", "c");
  await room.ask("a", "b");
  const between = await room.ask("b", "c");
  await room.ask("c", "a");
  const { key } = await makeKey(daemon, { rooms: [room.id], agent: "a", scopes: ["fabric:read"] });
  const { status, body } = await bare(daemon, "GET", `${room.path}/waits`, bearer(key));
  expect([status, body.waits.map(({ agent_id, on }: Json) => [agent_id, ...on])]).toEqual([
    200,
    [
      ["a", "b"],
      ["c", "a"],
    ],
  ]);
  expect(body.cycles).toEqual([]);
  expect(JSON.stringify(body)).not.toContain(between);
});

test("expired requests are removed, however many", async () => {
  const room = await roomOf("a", "b");
  for (let sent = 0; sent < 50; sent++) await room.send({ source: "a", destination: "b", kind: "request", ttl_ms: 1 });
  await room.counted(0);
  // They are not examined again.
  using database = new Database(join(daemon.dataDir, "roomd.db"), { readonly: true });
  const kept = database.query("SELECT count(*) AS n FROM deliveries WHERE awaited = 1 AND expires_at_ms > 0");
  await until(
    () => kept.get() as Json,
    ({ n }) => n === 0,
  );
});

test("a room of another organization or a destroyed one is not found", async () => {
  const room = await roomOf("a", "b");
  await room.ask("a", "b");
  const { api_key } = await makeOrg(daemon, "others");
  for (const path of ["waits", "timeline"]) {
    const answer = await bare(daemon, "GET", `${room.path}/${path}`, bearer(api_key));
    expect([answer.status, answer.body.code]).toEqual([404, "room_not_found"]);
  }
  await daemon.ok("DELETE", room.path);
  const response = await until(
    () => daemon.api("GET", `${room.path}/waits`),
    ({ status }) => status !== 200,
  );
  expect([response.status, response.body.code]).toEqual([404, "room_not_found"]);
});

test("the command prints cycles first, then one line per wait", async () => {
  const room = await roomOf("planner", "worker");
  await room.ask("planner", "worker");
  await room.ask("worker", "planner");
  const { status, stdout } = await daemon.cli(["waits", room.id]);
  const [first, header, ...rows] = stdout.trimEnd().split("\n");
  expect([status, rows.length]).toEqual([0, 2]);
  expect(first).toMatch(/^planner .*\bworker\b.*\bworker .*\bplanner\b/);
  expect(header).toMatch(/^AGENT /);
});

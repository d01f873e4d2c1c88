/** Overview of rooms, on a daemon without guests: present agents, blocked agents, recent messages, and the cost. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { People } from "../../harness/people.ts";
import { bare, bearer, makeKey, makeOrg } from "../calls.ts";

let daemon: TestDaemon;
let count = 0;

beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_BILLING_SANDBOX_HOUR: "2" } });
});
afterAll(() => daemon.stop());

const PATH = "/v1/overview/rooms";
const glanceOf = ({ items }: Json, id: string): Json => items.find((each: Json) => each.room_id === id);

/** A separate room in which these agents are known. */
async function roomOf(...agents: string[]) {
  const id = `glance-${++count}`;
  const { room_uid, created_at } = await daemon.room(id);
  const path = `/v1/rooms/${id}`;
  for (const agent of agents) await daemon.ok("GET", `${path}/messages?agent_id=${agent}`);
  const ask = async (source: string, destination: string): Promise<string> =>
    (await daemon.ok("POST", `${path}/messages`, { source, destination, kind: "request", payload: 1 })).message_id;
  return {
    ...{ id, path, room_uid, created_at, ask },
    glance: async (): Promise<Json> => glanceOf(await daemon.ok("GET", `${PATH}?limit=1000`), id),
    reply: (message: string, source: string): Promise<Json> =>
      daemon.ok("POST", `${path}/messages/${message}/reply`, { source, payload: 1 }),
  };
}

function rows<T>(work: (rows: Database) => T): T {
  const database = new Database(join(daemon.dataDir, "roomd.db"));
  try {
    database.run("PRAGMA busy_timeout = 5000");
    return work(database);
  } finally {
    database.close();
  }
}

describe("the overview of a room", () => {
  test("is empty at first", async () => {
    const room = await roomOf();
    const { created_at } = room;
    const { host } = await daemon.ok("GET", `/v1/rooms/${room.id}`);
    expect(await room.glance()).toEqual({
      ...{ host, room_id: room.id, room_uid: room.room_uid, state: "active", labels: {}, created_at, expires_at: null },
      ...{ agents: 0, running: 0, blocked: 0, in_circle: false, truncated: false, messages_last_minute: 0 },
      drive: { used_bytes: 0, limit_bytes: 10 * 1024 ** 3 },
      cost: { sandbox_seconds: 0, credits: 0 },
    });
  });

  test("counts its agents, the waiting ones, and its messages", async () => {
    const room = await roomOf("planner", "worker", "reviewer");
    const requestId = await room.ask("planner", "worker");
    expect(await room.glance()).toMatchObject({ agents: 3, blocked: 1, in_circle: false, messages_last_minute: 1 });
    const barrier = { barrier_id: "merged", agent_id: "reviewer", participants: ["reviewer", "worker"], timeout_ms: 0 };
    await daemon.ok("POST", `${room.path}/barriers`, barrier);
    expect(await room.glance()).toMatchObject({ blocked: 2, in_circle: false });
    const back = await room.ask("worker", "planner");
    expect(await room.glance()).toMatchObject({ blocked: 3, in_circle: true, messages_last_minute: 2 });
    await room.reply(requestId, "worker");
    await room.reply(back, "planner");
    expect(await room.glance()).toMatchObject({ blocked: 1, in_circle: false, messages_last_minute: 4 });
  });

  test("has the room's cost over all days, and of no other room", async () => {
    const room = await roomOf();
    const other = await roomOf();
    rows((database) => {
      // It was made some days ago.
      const made = new Date(Date.now() - 3 * 86_400_000).toISOString();
      database.run("UPDATE rooms SET created_at = ? WHERE room_uid = ?", [made, room.room_uid]);
      for (const [uid, daysAgo, ms] of [
        [room.room_uid, 0, 1_800_000],
        [room.room_uid, 3, 1_800_000],
        [other.room_uid, 0, 7_200_000],
      ]) {
        const day = new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10);
        database.run("INSERT INTO usage VALUES (?, ?, ?, 'worker', 'kid_1', ?, 0, 0, 0, 0, 0, 0, 0)", [
          ...[daemon.orgId, day, uid, ms],
        ] as (string | number)[]);
      }
    });
    expect((await room.glance()).cost).toEqual({ sandbox_seconds: 3600, credits: 2 });
    expect((await other.glance()).cost).toEqual({ sandbox_seconds: 7200, credits: 4 });
  });

  test("of a destroyed room has its cost, on request", async () => {
    const room = await roomOf("planner", "worker");
    await room.ask("planner", "worker");
    await daemon.ok("DELETE", room.path);
    expect(await room.glance()).toBeUndefined();
    const ended = glanceOf(await daemon.ok("GET", `${PATH}?state=destroyed&limit=1000`), room.id);
    expect(ended).toMatchObject({ state: "destroyed", agents: 0, blocked: 0, cost: { sandbox_seconds: 0 } });
  });
});

describe("the list", () => {
  test("is paged and filtered by labels, like the list of rooms", async () => {
    for (const room_id of ["page-a", "page-b", "page-c"])
      await daemon.ok("POST", "/v1/rooms", { room_id, labels: { paged: "yes" } });
    const names = ({ items }: Json) => items.map((each: Json) => each.room_id);
    const first = await daemon.ok("GET", `${PATH}?label=paged:yes&limit=2`);
    expect(names(first)).toEqual(["page-a", "page-b"]);
    const rest = await daemon.ok("GET", `${PATH}?label=paged:yes&limit=2&cursor=${first.next_cursor}`);
    expect([names(rest), rest.next_cursor]).toEqual([["page-c"], null]);
    expect((await daemon.api("GET", `${PATH}?cursor=x`)).body.code).toBe("invalid_cursor");
    expect((await daemon.api("GET", `${PATH}?limit=1001`)).status).toBe(422);
  });

  test("covers the caller's organization, and the rooms that its key is bound to", async () => {
    const room = await roomOf();
    await roomOf();
    const other = await makeOrg(daemon, "elsewhere");
    expect((await bare(daemon, "GET", PATH, bearer(other.api_key))).body.items).toEqual([]);
    const bound = bearer((await makeKey(daemon, { rooms: [room.id] })).key);
    expect((await bare(daemon, "GET", PATH, bound)).body.items.map((each: Json) => each.room_id)).toEqual([room.id]);
  });

  test("shows an agent-bound key the waits that it may see, and no cost", async () => {
    const room = await roomOf("planner", "worker", "reviewer");
    await room.ask("planner", "worker");
    await room.ask("reviewer", "planner");
    const as = async (agent: string) => {
      const { body } = await bare(daemon, "GET", PATH, bearer((await makeKey(daemon, { agent })).key));
      return glanceOf(body, room.id);
    };
    expect(await as("planner")).toMatchObject({ agents: 3, blocked: 2, cost: null });
    expect(await as("worker")).toMatchObject({ blocked: 1, cost: null });
    expect(await as("stranger")).toMatchObject({ blocked: 0 });
  });

  test("has no cost for a key without usage:read, and has it for a person", async () => {
    const room = await roomOf();
    const key = bearer((await makeKey(daemon, { scopes: ["rooms:read"] })).key);
    expect(glanceOf((await bare(daemon, "GET", `${PATH}?limit=1000`, key)).body, room.id).cost).toBeNull();
    const none = bearer((await makeKey(daemon, { scopes: ["usage:read"] })).key);
    expect((await bare(daemon, "GET", PATH, none)).body.code).toBe("insufficient_scope");
    const people = await People.first(daemon);
    const { body } = await people.owner.api("GET", `${PATH}?limit=1000`);
    expect(glanceOf(body, room.id).cost).toEqual({ sandbox_seconds: 0, credits: 0 });
  });

  test("is available on the command line", async () => {
    const room = await roomOf("planner", "worker");
    await room.ask("planner", "worker");
    await room.ask("worker", "planner");
    const { status, stdout } = await daemon.cli(["room", "overview", "--limit", "1000"]);
    expect(status).toBe(0);
    expect(stdout.split("\n")[0]).toMatch(/^ROOM /);
    expect(stdout).toMatch(new RegExp(`${room.id} +active +2 +0 +2 circle +2 `));
  });
});

test("a thousand rooms with waits are computed in many turns of the event loop", async () => {
  const own = await TestDaemon.start({ env: { ROOMD_PLAN_DEFAULT_ROOMS: "2000" } });
  try {
    const seed = await own.room("seed");
    await own.ok("GET", "/v1/rooms/seed/messages?agent_id=a");
    await own.ok("GET", "/v1/rooms/seed/messages?agent_id=b");
    for (const [source, destination] of [
      ["a", "b"],
      ["b", "a"],
    ])
      await own.ok("POST", "/v1/rooms/seed/messages", { source, destination, kind: "request", payload: 1 });
    const database = new Database(join(own.dataDir, "roomd.db"));
    database.run("PRAGMA busy_timeout = 5000");
    const copyOf = (table: string) => {
      const columns = database
        .query<{ name: string }, []>(`PRAGMA table_info(${table})`)
        .all()
        .map(({ name }) => name);
      const values = columns.map((name) => (name === "room_uid" ? "?1" : name === "room_id" ? "?2" : name));
      return database.query(`INSERT INTO ${table} SELECT ${values.join(", ")} FROM ${table} WHERE room_uid = ?3`);
    };
    const copies = ["rooms", "agents", "messages", "deliveries"].map(copyOf);
    database.transaction(() => {
      for (let index = 0; index < 999; index++) {
        const uid = `rom_${String(index).padStart(26, "0")}`;
        for (const copy of copies) copy.run(uid, `many-${index}`, seed.room_uid);
      }
    })();
    database.close();
    // Concurrent calls of other clients.
    let longestMs = 0;
    let answered = 0;
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        const began = performance.now();
        await own.ok("GET", "/v1/me");
        answered++;
        longestMs = Math.max(longestMs, performance.now() - began);
      }
    })();
    const began = performance.now();
    const { items } = await own.ok("GET", `${PATH}?limit=1000`);
    const tookMs = performance.now() - began;
    isOver = true;
    await others;
    const figures = `${tookMs.toFixed(0)} ms, ${answered} calls of others, the longest ${longestMs.toFixed(0)} ms`;
    console.log(`overview of 1000 rooms: ${figures}`);
    expect(items).toHaveLength(1000);
    expect(items.filter(({ blocked, in_circle }: Json) => blocked === 2 && in_circle)).toHaveLength(1000);
    // In one turn there would be one or two.
    expect(answered).toBeGreaterThan(5);
  } finally {
    await own.stop();
  }
}, 60_000);

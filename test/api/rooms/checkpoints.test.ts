/**
 * Checkpoints of rooms without running guests: contents of the database and the drive are restored, into another room and into the same
 * one; limits, plans and permissions; retries of the same call. Rooms with guests are in test/vm/rooms/checkpoint.test.ts.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { MAX_CHECKPOINTS } from "../../../shared/api/checkpoints.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { rowsOf } from "../../harness/durability/rows.ts";
import { until } from "../../harness/guests.ts";
import { bearer, makeOrg, run } from "../calls.ts";

const GIB = 1024 ** 3;
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: { ROOMD_PLANS_STARTER_DRIVE_GIB_SOFT_CAP: "0", ROOMD_PLANS_STARTER_DRIVE_GIB_HARD_CAP: "0" },
  });
});
afterAll(() => daemon.stop());

const room = (name: string, more = "") => `/v1/rooms/${name}${more}`;
const write = (name: string, path: string, content: string) =>
  daemon.ok("POST", room(name, "/drive/write"), { path, content });
const read = async (name: string, path: string): Promise<string | null> =>
  (await daemon.api("GET", room(name, `/drive/read?path=${path}`))).body.content ?? null;
const send = (name: string, message_id: string) =>
  daemon.ok("POST", room(name, "/messages"), { source: "one", destination: "two", message_id, ack_required: true });
const inbox = async (name: string): Promise<Json[]> =>
  (await daemon.ok("GET", room(name, "/messages?agent_id=two"))).items;
const idsIn = async (name: string) => (await inbox(name)).map(({ message_id }) => message_id);
const take = (name: string, body: Json = {}): Promise<Json> => daemon.ok("POST", room(name, "/checkpoints"), body);

async function prepare(name: string): Promise<Json> {
  const made = await daemon.room(name);
  await inbox(name);
  await send(name, "before");
  await daemon.ok("POST", room(name, "/barriers"), { barrier_id: "both", agent_id: "one", parties: 2, timeout_ms: 0 });
  await write(name, "mark", "before");
  return made;
}

async function change(name: string): Promise<void> {
  await send(name, "after");
  await daemon.ok("POST", room(name, "/barriers"), { barrier_id: "both", agent_id: "two", parties: 2, timeout_ms: 0 });
  await write(name, "mark", "after");
  await write(name, "more", "after");
}

const arrived = async (name: string) => (await daemon.ok("GET", room(name, "/barriers/both"))).arrived;

test("a fork has the first room's contents at the checkpoint, and both rooms are isolated", async () => {
  await prepare("first");
  const taken = await take("first", { name: "then", expires_in_seconds: 3600 });
  expect(taken).toMatchObject({ room_id: "first", name: "then", snapshots: [], paused_ms: 0 });
  expect(Date.parse(taken.expires_at) - Date.parse(taken.created_at)).toBe(3_600_000);
  await change("first");
  const { checkpoint_id } = taken;
  const forked = await daemon.ok("POST", room("first", "/fork"), { room_id: "second", checkpoint_id });
  expect(forked).toMatchObject({ room_id: "second", checkpoint_id, items: [], room: { state: "active" } });
  expect([await read("second", "mark"), await read("second", "more")]).toEqual(["before", null]);
  expect([await idsIn("first"), await idsIn("second")]).toEqual([["before", "after"], ["before"]]);
  expect([await arrived("first"), await arrived("second")]).toEqual([["one", "two"], ["one"]]);
  await send("second", "only-here");
  await write("second", "mark", "second");
  expect([await idsIn("first"), await read("first", "mark")]).toEqual([["before", "after"], "after"]);
  const { items } = await daemon.ok("GET", room("second", "/audit?event=room.created"));
  expect(items).toMatchObject([{ details: { of_room: "first", checkpoint_id } }]);
});

test("a restored room has its former contents, and never reuses a sequence number", async () => {
  await prepare("back");
  const { checkpoint_id } = await take("back");
  await change("back");
  const [, after] = await inbox("back");
  const { room: record } = await daemon.ok("POST", room("back", `/checkpoints/${checkpoint_id}/restore`));
  expect(record).toMatchObject({ room_id: "back", state: "active" });
  expect([await read("back", "mark"), await read("back", "more")]).toEqual(["before", null]);
  expect([await idsIn("back"), await arrived("back")]).toEqual([["before"], ["one"]]);
  await send("back", "later");
  const [, later] = await inbox("back");
  expect(later?.seq).toBeGreaterThan(after?.seq ?? Number.POSITIVE_INFINITY);
  // The former drive is erased, and nothing remains next to the room's.
  const { room_uid } = record;
  await until("the former drive is erased", () => {
    const names = readdirSync(join(daemon.dataDir, "rooms", room_uid)).sort();
    const former = names.includes("former") ? readdirSync(join(daemon.dataDir, "rooms", room_uid, "former")) : [];
    return former.length === 0 && names.filter((name) => name !== "former").join() === "checkpoints,drive";
  });
});

test("a room whose messages no longer fit is not restored, and stays unchanged", async () => {
  await using small = await TestDaemon.start({ env: { ROOMD_FABRIC_KEPT_MIB: "1" } });
  const fill = async (name: string) => {
    for (;;) {
      const payload = { text: "x".repeat(60_000) };
      const message = { source: "one", destination: "two", payload, ack_required: true };
      const { status, body } = await small.api("POST", room(name, "/messages"), message);
      if (status !== 202) return expect(body.code).toBe("quota_exceeded");
    }
  };
  for (const name of ["full", "other"]) {
    await small.room(name);
    await small.ok("GET", room(name, "/messages?agent_id=two"));
  }
  const empty = await small.ok("POST", room("full", "/checkpoints"), {});
  await fill("full");
  const { checkpoint_id } = await small.ok("POST", room("full", "/checkpoints"), {});
  await small.ok("POST", room("full", `/checkpoints/${empty.checkpoint_id}/restore`));
  await small.ok("POST", room("full", "/drive/write"), { path: "mark", content: "now" });
  await fill("other");
  const refused = await small.api("POST", room("full", `/checkpoints/${checkpoint_id}/restore`));
  expect([refused.status, refused.body.code]).toEqual([429, "quota_exceeded"]);
  expect((await small.ok("GET", room("full", "/drive/read?path=mark"))).content).toBe("now");
  await small.ok("POST", room("full", "/drive/write"), { path: "mark", content: "still" });
  await small.ok("DELETE", room("other", "?drive=delete"));
  await small.ok("POST", room("full", `/checkpoints/${checkpoint_id}/restore`));
  expect((await small.api("GET", room("full", "/drive/read?path=mark"))).status).toBe(404);
});

test("forks of one checkpoint run in parallel, and do not delay the end of the room", async () => {
  await prepare("many");
  const { checkpoint_id } = await take("many");
  const names = ["many-1", "many-2", "many-3", "many-4"];
  const made = await Promise.all(
    names.map((room_id) => daemon.api("POST", room("many", "/fork"), { room_id, checkpoint_id })),
  );
  expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  await daemon.ok("DELETE", room("many", "?drive=delete"));
  for (const name of names) {
    expect([await read(name, "mark"), await idsIn(name)]).toEqual(["before", ["before"]]);
    await daemon.ok("DELETE", room(name, "?drive=delete"));
  }
});

test("forks of a room with a TTL have the same TTL", async () => {
  const source = await daemon.ok("POST", "/v1/rooms", { room_id: "short", ttl_seconds: 7200, labels: { of: "test" } });
  const { room: made } = await daemon.ok("POST", room("short", "/fork"), { room_id: "short-2" });
  const life = ({ created_at, expires_at }: Json) => Date.parse(expires_at) - Date.parse(created_at);
  expect(Math.abs(life(made) - life(source))).toBeLessThan(2000);
  expect(made.labels).toEqual({ of: "test" });
});

describe("refused without a trace:", () => {
  test("a room ID in use, a checkpoint of another room, and all invalid fields together", async () => {
    await prepare("strict");
    const { checkpoint_id } = await take("strict");
    const refused = async (path: string, body: Json) => (await daemon.problem("POST", path, body)).code;
    expect(await refused(room("strict", "/fork"), { room_id: "strict" })).toBe("room_id_in_use");
    await daemon.room("other");
    expect(await refused(room("other", "/fork"), { room_id: "x", checkpoint_id })).toBe("checkpoint_not_found");
    expect(await refused(room("other", `/checkpoints/${checkpoint_id}/restore`), {})).toBe("checkpoint_not_found");
    const bad = await daemon.problem("POST", room("strict", "/checkpoints"), { name: "", expires_in_seconds: 1 });
    expect(bad.errors.map(({ field }: Json) => field).sort()).toEqual(["expires_in_seconds", "name"]);
    const { items } = await daemon.ok("GET", room("strict", "/checkpoints"));
    expect(items).toHaveLength(1);
  });

  test("a checkpoint above the room's limit, until one is deleted", async () => {
    await daemon.room("full");
    const taken: Json[] = [];
    for (let n = 0; n < MAX_CHECKPOINTS; n++) taken.push(await take("full"));
    expect(await daemon.problem("POST", room("full", "/checkpoints"), {})).toMatchObject({
      code: "quota_exceeded",
      details: { limit: "checkpoints", used: MAX_CHECKPOINTS, cap: MAX_CHECKPOINTS },
    });
    const { items, next_cursor } = await daemon.ok("GET", room("full", "/checkpoints?limit=40"));
    const rest = await daemon.ok("GET", room("full", `/checkpoints?limit=40&cursor=${next_cursor}`));
    expect([...items, ...rest.items].map(({ checkpoint_id }) => checkpoint_id)).toEqual(
      taken.map(({ checkpoint_id }) => checkpoint_id),
    );
    await daemon.ok("DELETE", room("full", `/checkpoints/${taken[0]?.checkpoint_id}`));
    await take("full");
  });

  test("a checkpoint above the drive quota of the plan", async () => {
    const { api_key, org_id } = await makeOrg(daemon, "small");
    const key = bearer(api_key);
    const call = (method: string, path: string, body?: Json) => daemon.api(method, path, body, key);
    await call("POST", "/v1/rooms", { room_id: "small" });
    await call("POST", room("small", "/drive/write"), { path: "a", content: "x".repeat(100_000) });
    const { body: taken } = await call("POST", room("small", "/checkpoints"), {});
    await run(daemon, "org", "set-plan", "--org", org_id, "--plan", "starter");
    const { checkpoint_id } = taken;
    for (const [path, body] of [
      ["/checkpoints", {}],
      ["/fork", { room_id: "small-2", checkpoint_id }],
    ] as const) {
      const answer = await call("POST", room("small", path), body);
      expect([path, answer.status, answer.body.code]).toEqual([path, 429, "quota_exceeded"]);
    }
    expect((await call("GET", "/v1/rooms")).body.items).toHaveLength(1);
    expect((await call("GET", room("small", "/checkpoints"))).body.items).toHaveLength(1);
  });
});

test("drive and checkpoint bytes count toward the plan until they are deleted", async () => {
  const { api_key } = await makeOrg(daemon, "counted");
  const key = bearer(api_key);
  const used = async () => (await daemon.api("GET", "/v1/orgs/self/usage", undefined, key)).body.drive.used_bytes;
  await daemon.api("POST", "/v1/rooms", { room_id: "r" }, key);
  await daemon.api("PUT", room("r", "/drive/files/a"), "x".repeat(4 * 1024 ** 2), key);
  const before = await used();
  const { body: taken } = await daemon.api("POST", room("r", "/checkpoints"), {}, key);
  expect(taken.drive_bytes).toBeGreaterThanOrEqual(4 * 1024 ** 2);
  expect(await used()).toBe(before + taken.size_bytes);
  expect(taken.size_bytes).toBeLessThan(GIB);
  await daemon.api("DELETE", room("r", `/checkpoints/${taken.checkpoint_id}`), undefined, key);
  expect(await used()).toBe(before);
});

test.each([
  ["restore.rows", "before"],
  ["restore.noted", "restored"],
  ["restore.turned", "restored"],
  ["restore.given", "restored"],
] as const)("a room whose restore is killed at %s is as %s", async (point, outcome) => {
  const name = point.replace(".", "-");
  await prepare(name);
  const { checkpoint_id } = await take(name);
  await change(name);
  await daemon.end("SIGTERM");
  daemon.env[FAULT_VARIABLE] = `${point}=kill`;
  await daemon.serve();
  await daemon.api("POST", room(name, `/checkpoints/${checkpoint_id}/restore`)).catch(() => null);
  await until("the daemon has exited", () => !daemon.runs);
  delete daemon.env[FAULT_VARIABLE];
  await daemon.serve();
  const before = { mark: "after", ids: ["before", "after"], arrived: ["one", "two"] };
  const restored = { mark: "before", ids: ["before"], arrived: ["one"] };
  const found = async () => ({ mark: await read(name, "mark"), ids: await idsIn(name), arrived: await arrived(name) });
  if (outcome === "restored") await until("the room is restored", async () => Bun.deepEquals(await found(), restored));
  expect(await found()).toEqual(outcome === "before" ? before : restored);
  await until("no row without a room remains", () => rowsOf(daemon).strays.length === 0);
  await until("the room accepts messages", async () => {
    const message = { source: "one", destination: "two", message_id: "later" };
    return (await daemon.api("POST", room(name, "/messages"), message)).status === 202;
  });
  expect(await idsIn(name)).toEqual([...(outcome === "before" ? before.ids : restored.ids), "later"]);
});

describe("the repeated call", () => {
  test.each([
    ["checkpoints", "checkpoint.whole", 1],
    ["fork", "fork.rows", 1],
    ["fork", "fork.made", 1],
    ["fork", "start.begun", 1],
  ] as const)("%s after a kill at %s has its effect exactly once", async (verb, point, count) => {
    const name = point.replace(".", "-");
    await prepare(name);
    await daemon.end("SIGTERM");
    daemon.env[FAULT_VARIABLE] = `${point}=kill`;
    await daemon.serve();
    const body = verb === "fork" ? { room_id: `${name}-2` } : {};
    const call = () => daemon.api("POST", room(name, `/${verb}`), body, { "idempotency-key": name });
    await call().catch(() => null);
    await until("the daemon has exited", () => !daemon.runs);
    delete daemon.env[FAULT_VARIABLE];
    await daemon.serve();
    await until("no row without a room remains", () => rowsOf(daemon).strays.length === 0);
    const { status, body: made } = await call();
    expect(status).toBe(201);
    expect((await call()).body).toEqual(made);
    const { items } = await daemon.ok("GET", room(name, "/checkpoints"));
    expect(items.map(({ checkpoint_id }: Json) => checkpoint_id)).toEqual([made.checkpoint_id]);
    expect(items).toHaveLength(count);
    if (verb === "fork")
      expect([await read(`${name}-2`, "mark"), await idsIn(`${name}-2`)]).toEqual(["before", ["before"]]);
  });
});

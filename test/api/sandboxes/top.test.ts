/** Current resource use: access to the figures of sandboxes and of the host. Their correctness is in test/vm/clients/top.test.ts. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { SCOPES } from "../../../shared/api/contract.ts";
import { type Json, NO_GUESTS, TestDaemon } from "../../harness/daemon.ts";
import { untilState } from "../../harness/guests.ts";
import { bare, bearer, makeKey, makeOrg } from "../calls.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "./described-template.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: NO_GUESTS,
  });
  describeTemplate(daemon);
  for (const [at, [room, agent_id]] of PLACES.entries()) {
    if (agent_id === "planner") await daemon.room(room);
    const sandbox = { agent_id, guest_cid: 9100 + at, memory_mib: DESCRIBED_MIN_MIB };
    await daemon.api("POST", `/v1/rooms/${room}/sandboxes/from-template`, sandbox);
    await untilState(daemon, room, agent_id, "failed");
  }
});
afterAll(() => daemon.stop());

const PLACES = [
  ["one", "planner"],
  ["one", "worker"],
  ["other", "planner"],
] as const;

async function seenWith(key: string, query = ""): Promise<{ places: unknown[]; body: Json; status: number }> {
  const { body, status } = await bare(daemon, "GET", `/v1/top${query}`, bearer(key));
  const places = status === 200 ? body.items.map(({ room_id, agent_id }: Json) => [room_id, agent_id]) : [];
  return { places, body, status };
}

test("an organization's key sees its sandboxes, and with org:admin the host", async () => {
  const { places, body } = await seenWith(daemon.apiKey);
  expect(places).toEqual(PLACES);
  expect(body).toMatchObject({ not_shown: 0, host: { rooms: 2, sandboxes: { failed: 3, running: 0 } } });
  // They never had a virtual machine.
  expect(body.items[0]).toMatchObject({
    state: "failed",
    cpu: { used_seconds: null },
    memory: { resident_bytes: null },
    disk: { used_bytes: 0 },
    egress: { sent_bytes: 0, received_bytes: 0, open_connections: 0 },
  });
  const { cpu, memory, disk } = body.host;
  expect(cpu.cores).toBeGreaterThan(0);
  expect(memory.size_bytes).toBeGreaterThan(memory.available_bytes);
  expect(disk.size_bytes).toBeGreaterThan(disk.free_bytes);
  const later = (await seenWith(daemon.apiKey)).body.host;
  expect(later.requests).toBe(body.host.requests + 1);
  expect(later.cpu.busy_seconds + later.cpu.idle_seconds).toBeGreaterThanOrEqual(cpu.busy_seconds + cpu.idle_seconds);
});

test("the usage can be limited to one room by name", async () => {
  expect((await seenWith(daemon.apiKey, "?room_id=other")).places).toEqual([["other", "planner"]]);
  const { status, body } = await seenWith(daemon.apiKey, "?room_id=none");
  expect([status, body.code]).toEqual([404, "room_not_found"]);
});

test("a bound key sees only what it is bound to, and no host", async () => {
  const all = [...SCOPES];
  const ofRoom = await makeKey(daemon, { scopes: all, rooms: ["other", "none"] });
  expect(await seenWith(ofRoom.key)).toMatchObject({ places: [["other", "planner"]], body: { host: null } });
  expect((await seenWith(ofRoom.key, "?room_id=one")).status).toBe(404);
  const ofAgent = await makeKey(daemon, { scopes: all, agent: "worker" });
  expect(await seenWith(ofAgent.key)).toMatchObject({ places: [["one", "worker"]], body: { host: null } });
  expect((await seenWith(ofAgent.key, "?room_id=other")).places).toEqual([]);
});

test("a key without org:admin sees no host, and one without sandboxes:read nothing", async () => {
  const reader = await makeKey(daemon, { scopes: ["sandboxes:read"] });
  expect(await seenWith(reader.key)).toMatchObject({ places: PLACES, body: { host: null } });
  const stranger = await makeKey(daemon, { scopes: ["rooms:read"] });
  expect((await seenWith(stranger.key)).status).toBe(403);
});

test("another organization sees none of them", async () => {
  const { api_key } = await makeOrg(daemon, "Other");
  expect((await seenWith(api_key)).places).toEqual([]);
  expect((await seenWith(api_key, "?room_id=one")).status).toBe(404);
});

test("a keyless call from the host itself sees the host, and no sandboxes", async () => {
  const { status, body } = await bare(daemon, "GET", "/v1/top");
  expect([status, body.items, body.host.rooms]).toEqual([200, [], 2]);
  expect((await bare(daemon, "GET", "/v1/top", { "x-forwarded-for": "203.0.113.7" })).status).toBe(401);
});

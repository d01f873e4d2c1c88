/** Sandboxes of all rooms in one list, and the short path that creates one: visibility, and that both paths are one operation. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SCOPES } from "../../../shared/api/contract.ts";
import { type Json, NO_GUESTS, TestDaemon } from "../../harness/daemon.ts";
import { untilState } from "../../harness/guests.ts";
import { bare, bearer, makeKey, makeOrg } from "../calls.ts";
import { describeTemplate } from "./described-template.ts";

let daemon: TestDaemon;
const PLACES = [
  ["one", "planner"],
  ["one", "worker"],
  ["other", "planner"],
] as const;

beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: NO_GUESTS,
  });
  describeTemplate(daemon);
  for (const [room, agent_id] of PLACES) {
    if (agent_id === "planner") await daemon.room(room);
    await daemon.api("POST", `/v1/rooms/${room}/sandboxes`, { agent_id, labels: { role: agent_id } });
    await untilState(daemon, room, agent_id, "failed");
  }
});
afterAll(() => daemon.stop());

async function seenWith(key: string, query = ""): Promise<{ places: unknown[]; body: Json; status: number }> {
  const { body, status } = await bare(daemon, "GET", `/v1/sandboxes${query}`, bearer(key));
  const places = status === 200 ? body.items.map(({ room_id, agent_id }: Json) => [room_id, agent_id]) : [];
  return { places, body, status };
}

describe("the list over all rooms", () => {
  test("has all sandboxes of the organization, filtered by label, state and room", async () => {
    const seen = async (query: string) => (await seenWith(daemon.apiKey, query)).places;
    expect(await seen("")).toEqual(PLACES);
    expect(await seen("?label=role:planner")).toEqual([PLACES[0], PLACES[2]]);
    expect(await seen("?state=failed&room_id=one")).toEqual([PLACES[0], PLACES[1]]);
    expect(await seen("?state=running")).toEqual([]);
    expect((await seenWith(daemon.apiKey, "?room_id=none")).body.code).toBe("room_not_found");
  });

  test("is paged, with cursors that are valid for it alone", async () => {
    const { body } = await seenWith(daemon.apiKey, "?limit=2");
    const next = encodeURIComponent(body.next_cursor);
    expect((await seenWith(daemon.apiKey, `?limit=2&cursor=${next}`)).places).toEqual([PLACES[2]]);
    expect((await daemon.problem("GET", `/v1/rooms/one/sandboxes?cursor=${next}`)).code).toBe("invalid_cursor");
  });

  test("shows a bound key only what it is bound to, and nothing of another organization", async () => {
    const ofRoom = await makeKey(daemon, { scopes: [...SCOPES], rooms: ["other", "none"] });
    expect((await seenWith(ofRoom.key)).places).toEqual([PLACES[2]]);
    expect((await seenWith(ofRoom.key, "?room_id=one")).status).toBe(404);
    const ofAgent = await makeKey(daemon, { scopes: [...SCOPES], agent: "worker" });
    expect((await seenWith(ofAgent.key)).places).toEqual([PLACES[1]]);
    const { api_key } = await makeOrg(daemon, "Other");
    expect((await seenWith(api_key)).places).toEqual([]);
  });
});

test("both paths of create are one operation, also for Idempotency-Key", async () => {
  await daemon.room("short");
  const { key } = await makeKey(daemon, { scopes: [...SCOPES], agent: "worker" });
  const headers = { "idempotency-key": "once", "content-type": "application/json", ...bearer(key) };
  const create = async (path: string, agent_id: string) =>
    await bare(daemon, "POST", `/v1/rooms/short/${path}`, headers, JSON.stringify({ agent_id }));
  const first = await create("sandboxes", "planner");
  const again = await create("sandboxes/from-template", "planner");
  expect([first.body.code, again.body.code]).toEqual(["source_mismatch", "source_mismatch"]);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect((await create("sandboxes/from-template", "other")).body.code).toBe("idempotency_key_reused");
});

test("the document has the operation once", async () => {
  const { paths } = await daemon.ok("GET", "/v1/openapi.json");
  expect(paths["/v1/rooms/{room_id}/sandboxes"].post).toBeUndefined();
  expect(paths["/v1/rooms/{room_id}/sandboxes/from-template"].post.operationId).toBe("sandbox_create");
});

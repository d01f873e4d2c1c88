/**
 * Idempotency-Key across a crash of the daemon between an effect and its response: a retry has one effect, and if one commit stores both,
 * it returns the response that was never delivered.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { type Answer, type Json, NO_GUESTS, TestDaemon } from "../../harness/daemon.ts";
import { untilState } from "../../harness/guests.ts";
import { bearer } from "../calls.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "../sandboxes/described-template.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: NO_GUESTS,
  });
  describeTemplate(daemon);
  await daemon.room("r");
  for (const agent of ["a", "b"]) await daemon.ok("GET", `/v1/rooms/r/messages?agent_id=${agent}`);
  await daemon.api("POST", "/v1/rooms/r/sandboxes/from-template", {
    agent_id: "it",
    guest_cid: 9100,
    memory_mib: DESCRIBED_MIN_MIB,
  });
  await untilState(daemon, "r", "it", "failed");
});
afterAll(() => daemon.stop());

interface Post {
  path: string;
  body: Json;
  operator?: true;
}

/** Number of the created items: one more after the call, despite retries. */
type Count = () => Promise<number>;

const items =
  (path: string): Count =>
  async () =>
    (await daemon.ok("GET", path)).items.length;
const post = ({ path, body, operator }: Post, key: string): Promise<Answer> =>
  daemon.api("POST", path, body, { "idempotency-key": key, ...(operator ? bearer(daemon.operatorKey) : {}) });

/** Makes the call and has the daemon end at the point; then there is a daemon again. */
async function cutOff(call: Post, key: string, point: string): Promise<void> {
  daemon.env[FAULT_VARIABLE] = `${point}=kill`;
  await daemon.restart();
  delete daemon.env[FAULT_VARIABLE];
  await expect(post(call, key)).rejects.toThrow();
  await daemon.restart();
}

const PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me";

describe("a daemon that is killed after the work and before the answer", () => {
  test.each<[string, Post, Count]>([
    ["a room", { path: "/v1/rooms", body: { room_id: "crashed" } }, items("/v1/rooms")],
    ["a key", { path: "/v1/orgs/self/keys", body: { name: "crashed" } }, items("/v1/orgs/self/keys")],
    [
      "a public key",
      { path: "/v1/orgs/self/ssh-keys", body: { public_key: PUBLIC_KEY } },
      items("/v1/orgs/self/ssh-keys"),
    ],
    [
      "a message",
      { path: "/v1/rooms/r/messages", body: { source: "b", destination: "a", payload: "x" } },
      items("/v1/rooms/r/messages?agent_id=a&after=0"),
    ],
    [
      "an organization",
      { path: "/v1/orgs", body: { name: "crashed" }, operator: true },
      async () => (await daemon.cli(["org", "list", "--json"])).stdout.split('"crashed"').length - 1,
    ],
  ])("has created %s once, and returns the original answer", async (name, call, count) => {
    const before = await count();
    const idempotencyKey = name.replaceAll(" ", "-");
    await cutOff(call, idempotencyKey, "call.worked");
    const again = await post(call, idempotencyKey);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect([201, 202]).toContain(again.status);
    const third = await post(call, idempotencyKey);
    expect(third.body).toEqual(again.body);
    expect(await count()).toBe(before + 1);
    const key = again.body.key ?? again.body.api_key;
    if (key !== undefined) expect((await daemon.api("GET", "/v1/me", undefined, bearer(key))).status).toBe(200);
    const { items: records } = await daemon.ok("GET", "/v1/orgs/self/audit?order=asc&limit=1000");
    // The operator's calls are in no organization's chain.
    const done = records.filter(({ status, details }: Json) => status === again.status && !details.replayed);
    if (!call.operator) expect(done.at(-1)).toMatchObject({ outcome: "success", source: "rest" });
  });

  test("has arrived at a barrier once: the repeated call does not arrive in the next generation", async () => {
    const call = { path: "/v1/rooms/r/barriers", body: { barrier_id: "b", agent_id: "a", parties: 1 } };
    await cutOff(call, "barrier", "call.worked");
    const again = await post(call, "barrier");
    expect(again).toMatchObject({ status: 200, body: { generation: 1, state: "released", arrived: ["a"] } });
    expect(await daemon.ok("GET", "/v1/rooms/r/barriers/b")).toMatchObject({ generation: 1 });
    expect((await post(call, "another")).body.generation).toBe(2);
  });

  test("has replaced a key once", async () => {
    const old = await daemon.ok("POST", "/v1/orgs/self/keys", { name: "old" });
    const call = { path: `/v1/orgs/self/keys/${old.key_id}/rotate`, body: { grace_seconds: 60 } };
    await cutOff(call, "rotate", "call.worked");
    const again = await post(call, "rotate");
    expect(again).toMatchObject({ status: 201, body: { replaces: { key_id: old.key_id } } });
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(again.body.key))).status).toBe(200);
  });
});

describe("a daemon that is killed after the drive write and before its record", () => {
  const DRIVE = "/v1/rooms/r/drive";
  const contentOf = async (path: string) => (await daemon.ok("GET", `${DRIVE}/read?path=${path}`)).content;

  test.each(["append.written", "append.synced", "call.worked"])("at %s has appended the line once", async (point) => {
    const path = `/${point}`;
    await daemon.ok("POST", `${DRIVE}/write`, { path, content: "first\n" });
    const call = { path: `${DRIVE}/write`, body: { path, content: "second\n", append: true } };
    await cutOff(call, point, point);
    expect(await post(call, point)).toMatchObject({ status: 200, body: { size_bytes: 13 } });
    expect(await contentOf(path)).toBe("first\nsecond\n");
  });

  test("has created the file with overwrite=false, and moved it", async () => {
    const write = { path: `${DRIVE}/write`, body: { path: "/new", content: "x", overwrite: false } };
    await cutOff(write, "new", "call.worked");
    expect(await post(write, "new")).toMatchObject({ status: 201, body: { created: true } });
    expect((await post(write, "other")).body.code).toBe("already_exists");
    const move = { path: `${DRIVE}/move`, body: { from: "/new", to: "/moved" } };
    await cutOff(move, "move", "call.worked");
    expect(await post(move, "move")).toMatchObject({ status: 200, body: { path: "/moved" } });
    expect(await contentOf("/moved")).toBe("x");
  });
});

test("a daemon that is killed before the work leaves the call repeatable", async () => {
  const call = { path: "/v1/rooms", body: { room_id: "claimed" } };
  await cutOff(call, "claimed", "call.claimed");
  expect((await daemon.api("GET", "/v1/rooms/claimed")).status).toBe(404);
  const again = await post(call, "claimed");
  expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, null]);
});

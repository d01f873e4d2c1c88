/** Organizations and keys over the API: grantable scopes, visible keys, rotation and revocation. */
import { Database } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SCOPES } from "../../../shared/api/contract.ts";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey, makeOrg, until } from "../calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.room("a");
  await daemon.room("b");
});
afterAll(() => daemon.stop());

const KEYS = "/v1/orgs/self/keys";
const KEY = /^key-[0-9A-Za-z]{43}$/;
const as = (key: string, method: string, path: string, body?: unknown): Promise<Answer> =>
  daemon.api(method, path, body, bearer(key));
const create = (body: Json, key = daemon.apiKey) => as(key, "POST", KEYS, { name: "test", ...body });
async function made(body: Json = {}, key = daemon.apiKey): Promise<Json> {
  const answer = await create(body, key);
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 201 });
  return answer.body;
}
const me = async (key: string) => (await as(key, "GET", "/v1/me")).body;
const shownOf = async (keyId: string): Promise<Json> =>
  (await daemon.ok("GET", `${KEYS}?limit=1000`)).items.find((each: Json) => each.key_id === keyId);

test("on the service's host the command line changes its data, unless ROOMD_URL names another host", async () => {
  expect((await daemon.cli(["key", "list"])).status).toBe(0);
  const { status, stderr } = await daemon.cli(["key", "create", "--name", "x"], undefined, {
    ROOMD_URL: "http://rooms.invalid:1",
  });
  expect([status === 0, stderr]).toEqual([false, expect.stringContaining("rooms.invalid")]);
});

describe("a new key", () => {
  test("works immediately with its properties, and is shown once", async () => {
    const body = { name: "reader", scopes: ["rooms:read"], room_ids: ["a"], agent_id: "w-1", expires_in_seconds: 60 };
    const { status, body: key } = await create(body);
    expect(status).toBe(201);
    expect(key).toMatchObject({ ...shape(body), key: expect.stringMatching(KEY), state: "active", last_used_at: null });
    expect(key.key_id).toMatch(/^kid_[0-9A-Z]{26}$/);
    expect(key.created_by).toEqual({ type: "key", id: (await me(daemon.apiKey)).key_id });
    expect(await me(key.key)).toMatchObject({ ...shape(body), org_id: daemon.orgId, key_id: key.key_id });
    const lasts = Date.parse(key.expires_at) - Date.parse(key.created_at);
    expect(Math.abs(lasts - 60_000)).toBeLessThan(2000);
    const shown = await shownOf(key.key_id);
    expect(shown.key).toBeUndefined();
    expect(shown.key_prefix).toBe(key.key.slice(0, 12));
  });

  test("inherits its creator's properties by default", async () => {
    expect(await made()).toMatchObject({ scopes: [...SCOPES], room_ids: null, agent_id: null, expires_at: null });
    const scopes = ["rooms:read", "keys:write"];
    const maker = await made({ scopes, room_ids: ["a", "b"], agent_id: "w-1", expires_in_seconds: 600 });
    const { expires_at } = maker;
    expect(await made({}, maker.key)).toMatchObject({ scopes, room_ids: ["a", "b"], agent_id: "w-1", expires_at });
  });

  test("expires", async () => {
    const { key, key_id } = await made({ expires_in_seconds: 1 });
    const ended = await until(
      () => as(key, "GET", "/v1/me"),
      ({ status }) => status !== 200,
    );
    expect(ended).toMatchObject({ status: 401, body: { code: "api_key_expired" } });
    expect((await shownOf(key_id)).state).toBe("expired");
  });

  test("is refused with all its errors", async () => {
    const { status, body } = await create({
      name: "",
      scopes: ["everything"],
      room_ids: [],
      agent_id: "sbx_1",
      expires_in_seconds: 0,
      colour: "red",
    });
    expect(status).toBe(422);
    expect(body.errors.map(({ field }: Json) => field).sort()).toEqual([
      "agent_id",
      "colour",
      "expires_in_seconds",
      "name",
      "room_ids",
      "scopes[0]",
    ]);
    expect((await create({ name: "two\nlines" })).status).toBe(422);
    expect((await create({ scopes: ["exec", "exec"] })).status).toBe(422);
    expect((await create({ room_ids: Array.from({ length: 300 }, (_, n) => `r-${n}`) })).status).toBe(422);
  });
});

function shape({ expires_in_seconds: _, ...body }: Json): Json {
  return body;
}

describe("a key cannot grant more than it has:", () => {
  test.each([
    ["a scope", { scopes: ["rooms:read", "exec"] }, { scopes: ["exec"] }],
    ["the administrator's scope", { scopes: ["org:admin"] }, { scopes: ["org:admin"] }],
    ["another room", { room_ids: ["a", "b"] }, { room_ids: ["a"] }],
    ["another agent", { agent_id: "w-2" }, { agent_id: "w-1" }],
    ["a later end", { expires_in_seconds: 86_400 }, {}],
  ])("%s", async (_, request, details) => {
    const scopes = ["rooms:read", "keys:write"];
    const { key } = await made({ scopes, room_ids: ["a"], agent_id: "w-1", expires_in_seconds: 600 });
    expect(await create(request, key)).toMatchObject({ status: 403, body: { code: "scope_escalation", details } });
    expect((await create({}, key)).status).toBe(201);
  });

  test("by rotating a key that has more", async () => {
    const strong = await made({ scopes: ["exec"] });
    const lasting = await made({ scopes: ["rooms:read"] });
    const { key } = await made({ scopes: ["rooms:read", "keys:write"], expires_in_seconds: 600 });
    for (const { key_id } of [strong, lasting]) {
      const refused = await as(key, "POST", `${KEYS}/${key_id}/rotate`, {});
      expect(refused).toMatchObject({ status: 403, body: { code: "scope_escalation" } });
    }
    expect((await me(strong.key)).key_id).toBe(strong.key_id);
  });

  test("the scope org:admin includes all others", async () => {
    const { key } = await made({ scopes: ["org:admin"] });
    expect((await create({ scopes: ["exec", "audit:read"] }, key)).status).toBe(201);
  });

  test("without keys:write it grants nothing", async () => {
    const { key, key_id } = await made({ scopes: SCOPES.filter((each) => !/^(keys|org):/.test(each)) });
    const calls = [
      as(key, "POST", KEYS, { name: "x" }),
      as(key, "GET", KEYS),
      as(key, "POST", `${KEYS}/${key_id}/rotate`, {}),
      as(key, "DELETE", `${KEYS}/${key_id}`),
    ];
    for (const { status, body } of await Promise.all(calls))
      expect([status, body.code]).toEqual([403, "insufficient_scope"]);
  });
});

describe("a bound key", () => {
  test("sees, rotates and revokes only keys within its binding", async () => {
    const inside = await made({ room_ids: ["a"], agent_id: "w-1" });
    const maker = await made({ room_ids: ["a", "b"], agent_id: "w-1" });
    const hidden = [await made({ room_ids: ["c"] }), await made({ room_ids: ["a"], agent_id: "w-2" }), await made()];
    const seen = (await as(maker.key, "GET", `${KEYS}?limit=1000`)).body.items.map(({ key_id }: Json) => key_id);
    expect(seen).toEqual(expect.arrayContaining([inside.key_id, maker.key_id]));
    for (const { key_id, key } of hidden) {
      expect(seen).not.toContain(key_id);
      for (const [method, path] of [
        ["POST", `${KEYS}/${key_id}/rotate`],
        ["DELETE", `${KEYS}/${key_id}`],
      ] as const) {
        const refused = await as(maker.key, method, path, method === "POST" ? {} : undefined);
        const never = await as(maker.key, method, path.replace(key_id, "kid_none"), method === "POST" ? {} : undefined);
        expect(refused).toMatchObject({ status: 404, body: { code: "key_not_found" } });
        expect({ ...never.body, request_id: "", detail: "" }).toEqual({ ...refused.body, request_id: "", detail: "" });
      }
      expect((await me(key)).key_id).toBe(key_id);
    }
    expect((await as(maker.key, "DELETE", `${KEYS}/${inside.key_id}`)).status).toBe(200);
  });

  test("acts as its agent", async () => {
    const { key } = await made({ agent_id: "w-1" });
    const message = { source: "w-2", destination: "w-1", kind: "event", payload: {} };
    expect((await as(key, "POST", "/v1/rooms/a/messages", message)).body.code).toBe("source_mismatch");
    expect((await as(key, "POST", "/v1/rooms/a/messages", { ...message, source: "w-1" })).status).toBeLessThan(300);
  });

  test("sees no other room than its own", async () => {
    const { key } = await made({ room_ids: ["a"] });
    expect((await as(key, "GET", "/v1/rooms/a")).status).toBe(200);
    expect((await as(key, "GET", "/v1/rooms/b")).body.code).toBe("room_not_found");
  });
});

describe("another organization", () => {
  test("cannot access a key: neither the key nor the organization is found", async () => {
    const other = await makeOrg(daemon, "Other");
    const { key_id, key } = await made();
    for (const org of ["self", other.org_id]) {
      const list = (await as(other.api_key, "GET", `/v1/orgs/${org}/keys`)).body.items;
      expect(list.map(({ name }: Json) => name)).toEqual(["first"]);
      for (const [method, path] of [
        ["POST", `/v1/orgs/${org}/keys/${key_id}/rotate`],
        ["DELETE", `/v1/orgs/${org}/keys/${key_id}`],
      ] as const) {
        const refused = await as(other.api_key, method, path, method === "POST" ? {} : undefined);
        expect([refused.status, refused.body.code]).toEqual([404, "key_not_found"]);
      }
    }
    for (const [method, path] of [
      ["GET", `/v1/orgs/${daemon.orgId}/keys`],
      ["POST", `/v1/orgs/${daemon.orgId}/keys`],
      ["DELETE", `/v1/orgs/${daemon.orgId}/keys/${key_id}`],
    ] as const) {
      const refused = await as(other.api_key, method, path, method === "POST" ? { name: "x" } : undefined);
      expect([refused.status, refused.body.code]).toEqual([404, "org_not_found"]);
    }
    expect((await me(key)).key_id).toBe(key_id);
  });
});

describe("the list of keys", () => {
  test("pages through every key once, newest first, without usable secrets", async () => {
    const { api_key } = await makeOrg(daemon, "Lister");
    const keys: Json[] = [];
    for (let n = 0; n < 7; n++) keys.push(await made({ name: `n-${n}` }, api_key));
    const pages: Json[] = [];
    for (let cursor = ""; ; ) {
      const { body } = await as(api_key, "GET", `${KEYS}?limit=3${cursor}`);
      pages.push(...body.items);
      if (body.next_cursor === null) break;
      cursor = `&cursor=${body.next_cursor}`;
    }
    expect(pages.map(({ name }) => name)).toEqual([...keys.map(({ name }) => name).reverse(), "first"]);
    for (const { key } of keys) {
      expect(JSON.stringify(pages)).not.toContain(key.slice(0, 13));
      expect(JSON.stringify(pages)).not.toContain(new Bun.CryptoHasher("sha256").update(key).digest("hex"));
    }
    expect((await as(api_key, "GET", `${KEYS}?cursor=abc.def`)).body.code).toBe("invalid_cursor");
  });
});

describe("the last use of a key", () => {
  test("is shown, and survives a restart", async () => {
    const { key, key_id } = await made();
    expect((await shownOf(key_id)).last_used_at).toBeNull();
    const before = Date.now();
    await me(key);
    const { last_used_at } = await shownOf(key_id);
    expect(Date.parse(last_used_at)).toBeGreaterThanOrEqual(before);
    await daemon.restart("SIGTERM");
    expect((await shownOf(key_id)).last_used_at).toBe(last_used_at);
  });
});

describe("revocation", () => {
  test("is immediate, works once, and may be of the calling key", async () => {
    const { key, key_id } = await made();
    const revoked = await as(key, "DELETE", `${KEYS}/${key_id}`);
    expect(revoked).toMatchObject({ status: 200, body: { key_id, state: "revoked" } });
    expect((await me(key)).code).toBe("invalid_api_key");
    const again = await daemon.api("DELETE", `${KEYS}/${key_id}`);
    expect(again).toMatchObject({ status: 404, body: { code: "key_not_found" } });
    expect((await shownOf(key_id)).state).toBe("revoked");
  });

  test("of the operator's key is not allowed to an organization", async () => {
    const db = new Database(join(daemon.dataDir, "roomd.db"), { readonly: true });
    const { key_id } = db.query("SELECT key_id FROM api_keys WHERE kind = 'operator'").get() as { key_id: string };
    db.close();
    expect((await daemon.api("DELETE", `${KEYS}/${key_id}`)).body.code).toBe("key_not_found");
  });
});

describe("rotation", () => {
  test("creates an equal key; both work until the grace period ends, then only the new one", async () => {
    const body = { scopes: ["rooms:read"], room_ids: ["a"], agent_id: "w-1", expires_in_seconds: 600 };
    const old = await made(body);
    const { status, body: fresh } = await daemon.api("POST", `${KEYS}/${old.key_id}/rotate`, { grace_seconds: 2 });
    expect(status).toBe(201);
    expect(fresh).toMatchObject({ ...shape(body), name: "test", expires_at: old.expires_at, state: "active" });
    expect(fresh.replaces).toMatchObject({ key_id: old.key_id, state: "active", replaced_by: fresh.key_id });
    expect(fresh.key).not.toBe(old.key);
    expect([(await me(old.key)).key_id, (await me(fresh.key)).key_id]).toEqual([old.key_id, fresh.key_id]);
    const ended = await until(
      () => me(old.key),
      ({ code }) => code !== undefined,
    );
    expect(ended.code).toBe("api_key_expired");
    expect((await me(fresh.key)).key_id).toBe(fresh.key_id);
  });

  test("without grace ends the old key immediately", async () => {
    const old = await made();
    const { body } = await as(old.key, "POST", `${KEYS}/${old.key_id}/rotate`, { grace_seconds: 0 });
    expect(body.replaces.state).toBe("revoked");
    expect([(await me(old.key)).code, (await me(body.key)).key_id]).toEqual(["invalid_api_key", body.key_id]);
  });

  test("extends no key's lifetime", async () => {
    const old = await made({ expires_in_seconds: 60 });
    const { body } = await daemon.api("POST", `${KEYS}/${old.key_id}/rotate`, { grace_seconds: 3600 });
    expect([body.expires_at, body.replaces.expires_at]).toEqual([old.expires_at, old.expires_at]);
  });

  test("requires a valid key that was not rotated before", async () => {
    const old = await made();
    const first = await daemon.api("POST", `${KEYS}/${old.key_id}/rotate`, {});
    const second = await daemon.api("POST", `${KEYS}/${old.key_id}/rotate`, {});
    expect(second).toMatchObject({
      status: 409,
      body: { code: "invalid_state", details: { replaced_by: first.body.key_id } },
    });
    await daemon.ok("DELETE", `${KEYS}/${first.body.key_id}`);
    const problem = await daemon.problem("POST", `${KEYS}/${first.body.key_id}/rotate`, {});
    expect(problem.code).toBe("key_not_found");
    expect((await daemon.problem("POST", `${KEYS}/kid_none/rotate`, {})).code).toBe("key_not_found");
    expect((await daemon.problem("POST", `${KEYS}/${old.key_id}/rotate`, { grace_seconds: -1 })).status).toBe(422);
  });

  test("a hundred concurrent times is one", async () => {
    const { key_id } = await made();
    const path = `${KEYS}/${key_id}/rotate`;
    const answers = await Promise.all(Array.from({ length: 100 }, () => daemon.api("POST", path, {})));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(99);
  });
});

describe("organizations", () => {
  const orgs = (body: unknown, key = daemon.operatorKey) => as(key, "POST", "/v1/orgs", body);

  test("are created with the operator's key, each with a working first key", async () => {
    const { status, body } = await orgs({ name: "Acme", plan: "starter" });
    expect(status).toBe(201);
    expect(body).toMatchObject({ name: "Acme", plan: "starter", api_key: expect.stringMatching(KEY) });
    expect(await me(body.api_key)).toMatchObject({ org_id: body.org_id, plan: "starter", key_id: body.key_id });
    expect((await orgs({ name: "Plain" })).body.plan).toBe("free");
    const { items } = (await as(body.api_key, "GET", "/v1/orgs/self/audit?order=asc")).body;
    expect(items.slice(0, 2).map(({ event, actor }: Json) => [event, actor.type])).toEqual([
      ["org.created", "operator"],
      ["key.created", "operator"],
    ]);
  });

  test("are not created with an organization's key, with a duplicate name or an unknown plan", async () => {
    expect(await orgs({ name: "No" }, daemon.apiKey)).toMatchObject({
      status: 403,
      body: { code: "insufficient_scope" },
    });
    expect((await orgs({ name: "Twice" })).status).toBe(201);
    expect(await orgs({ name: "Twice" })).toMatchObject({ status: 409, body: { code: "already_exists" } });
    expect((await orgs({ name: "X", plan: "gold" })).status).toBe(422);
    expect((await orgs({})).status).toBe(422);
  });

  test("are the only permission of the operator's key", async () => {
    for (const path of ["/v1/me", KEYS, "/v1/rooms", `/v1/orgs/${daemon.orgId}/keys`]) {
      expect((await as(daemon.operatorKey, "GET", path)).body.code).toBe("invalid_api_key");
    }
  });
});

describe("stored data about keys", () => {
  test("has no usable secret: not in the database, stored answers or the log", async () => {
    const idempotent = (path: string, body: unknown, headers: Record<string, string> = {}) =>
      daemon.api("POST", path, body, { "idempotency-key": "kept", ...headers });
    const first = await idempotent(KEYS, { name: "kept" });
    const rotated = await idempotent(`${KEYS}/${first.body.key_id}/rotate`, {});
    const org = await idempotent("/v1/orgs", { name: "Kept" }, bearer(daemon.operatorKey));
    // The same call again has the same answer, over the end of a daemon.
    await daemon.restart("SIGKILL");
    const again = [
      await idempotent(KEYS, { name: "kept" }),
      await idempotent(`${KEYS}/${first.body.key_id}/rotate`, {}),
      await idempotent("/v1/orgs", { name: "Kept" }, bearer(daemon.operatorKey)),
    ];
    for (const [at, { body }] of [first, rotated, org].entries()) expect(again[at]?.body).toEqual(body);
    expect(again.map(({ headers }) => headers.get("idempotency-replayed"))).toEqual(["true", "true", "true"]);

    const secrets = [daemon.apiKey, daemon.operatorKey, first.body.key, rotated.body.key, org.body.api_key];
    const files = readdirSync(daemon.dataDir).filter((name) => name.startsWith("roomd.db"));
    expect(files.length).toBeGreaterThan(0);
    for (const secret of secrets) {
      expect(secret).toMatch(KEY);
      for (const file of files) expect(readFileSync(join(daemon.dataDir, file)).includes(secret)).toBe(false);
      expect(daemon.log).not.toContain(secret);
    }
  });

  test("has an audit record for each change, with actor and outcome", async () => {
    const { key, key_id } = await made({ scopes: ["keys:write"] });
    const weak = await create({ scopes: ["exec"] }, key);
    expect(weak.status).toBe(403);
    const fresh = await daemon.ok("POST", `${KEYS}/${key_id}/rotate`, {});
    await daemon.ok("DELETE", `${KEYS}/${fresh.key_id}`);
    await daemon.ok("GET", KEYS);
    const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=key.&limit=5");
    const records = items.map(({ event, outcome, details }: Json) => [event, outcome, details.key_id]);
    expect(records).toEqual([
      ["key.listed", "success", undefined],
      ["key.revoked", "success", fresh.key_id],
      ["key.rotated", "success", key_id],
      ["key.created", "denied", undefined],
      ["key.created", "success", key_id],
    ]);
    expect(items[4].details).toMatchObject({ scopes: ["keys:write"], room_ids: null });
    expect(JSON.stringify(items)).not.toContain(key);
  });

  test("survives a kill once acknowledged", async () => {
    const kept = await made();
    const revoked = await makeKey(daemon);
    await daemon.ok("DELETE", `${KEYS}/${revoked.key_id}`);
    await daemon.restart("SIGKILL");
    expect((await me(kept.key)).key_id).toBe(kept.key_id);
    expect((await me(revoked.key)).code).toBe("invalid_api_key");
  });
});

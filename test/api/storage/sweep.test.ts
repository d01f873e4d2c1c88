/**
 * Each operation of the list in turn: the callers that may use it, and that resources of another organization appear absent. A new
 * operation is swept by being on the list; an operation that requests.ts cannot call fails the first test.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Operation, SCOPES, type Scope } from "../../../shared/api/contract.ts";
import { Visitor } from "../../harness/browser/visitor.ts";
import { type Answer, TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer, makeKey, makeOrg, run, until } from "../calls.ts";
import { missing, type Names, OPERATIONS, requestOf, unused } from "../requests.ts";

const ROOM = "shared-name";
let daemon: TestDaemon;
let names: Names;
let owner: Visitor;

beforeAll(async () => {
  daemon = await TestDaemon.start();
  owner = await Visitor.owner(daemon);
  names = { room_id: "swept", org_id: daemon.orgId };
  await daemon.room(names.room_id);
});
afterAll(() => daemon.stop());

function call(operation: Operation, headers: Record<string, string>, own: Names = names): Promise<Answer> {
  const request = requestOf(operation, own);
  return bare(daemon, request.method, request.path, { ...request.headers, ...headers }, request.body);
}

const guarded = OPERATIONS.filter(({ access }) => access !== "open");
const scoped = guarded.filter(({ access }) => access !== "key" && access !== "operator");
const operators = guarded.filter(({ access }) => access === "operator");
/** With a key, or with a session for operations of a person's account. */
const rightHeaders = ({ access }: Operation) =>
  access === "account" ? owner.headers : bearer(access === "operator" ? daemon.operatorKey : daemon.apiKey);
const unknownKey = `key-${"A".repeat(43)}`;

test("every operation can be called", () => {
  expect(missing()).toEqual([]);
  expect(unused()).toEqual([]);
  expect(OPERATIONS.length).toBeGreaterThan(25);
});

describe("a sufficient key", () => {
  test.each(OPERATIONS)("is accepted by $name", async (operation) => {
    const own = { ...names, room_id: `right-${operation.name.replaceAll("_", "-")}` };
    await daemon.room(own.room_id);
    const { status, body } = await call(operation, rightHeaders(operation), own);
    if (status < 400) expect(Object.values(operation.outcomes)).toContain(status);
    else if (operation.access !== "open") expect(operation.errors).toContain(body.code);
    expect([401, 403, 405]).not.toContain(status);
    expect(status, JSON.stringify(body)).toBeLessThan(operation.access === "open" ? 504 : 500);
  });
});

describe("without a key", () => {
  // These calls come from the host itself; metrics.test.ts calls from elsewhere.
  test.each(guarded.filter(({ openToHost }) => !openToHost))("$name is refused", async (operation) => {
    const { status, body, headers } = await call(operation, {});
    expect({ status, code: body.code }).toEqual({ status: 401, code: "missing_credentials" });
    expect(headers.get("www-authenticate")).toMatch(/^Bearer/);
  });

  test.each(OPERATIONS.filter(({ access }) => access === "open"))("$name is open without one", async (operation) => {
    const { status } = await call(operation, {});
    expect(Object.values(operation.outcomes)).toContain(status);
  });
});

describe("an invalid key", () => {
  test.each(guarded)("is refused by $name", async (operation) => {
    const spellings = ["key-short", unknownKey, `${daemon.apiKey} `.repeat(2), ""];
    if (operation.access !== "operator" && !operation.openToOperator) spellings.push(daemon.operatorKey);
    for (const key of spellings) {
      const { status, body, headers } = await call(operation, bearer(key));
      expect({ key, status, code: body.code }).toEqual({ key, status: 401, code: "invalid_api_key" });
      expect(headers.get("www-authenticate")).toMatch(/^Bearer/);
    }
    const basic = await call(operation, { authorization: `Basic ${btoa(`x:${daemon.apiKey}`)}` });
    expect(basic.body.code).toBe("invalid_api_key");
  });
});

describe("an expired key", () => {
  let expired: string;
  beforeAll(async () => {
    expired = (await makeKey(daemon, { expires_in_seconds: 1 })).key;
    const first = await daemon.api("GET", "/v1/me", undefined, bearer(expired));
    expect(first.status).toBe(200);
    await until(
      async () => (await daemon.api("GET", "/v1/me", undefined, bearer(expired))).status,
      (status) => status === 401,
    );
  });

  test.each(guarded)("is refused by $name", async (operation) => {
    const { status, body } = await call(operation, bearer(expired));
    expect({ status, code: body.code }).toEqual({ status: 401, code: "api_key_expired" });
  });
});

describe("a key that was revoked while it was in use", () => {
  let revoked: string;
  beforeAll(async () => {
    const made = await makeKey(daemon);
    revoked = made.key;
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(revoked))).status).toBe(200);
    await run(daemon, "key", "revoke", made.key_id);
  });

  test.each(guarded)("is refused by $name", async (operation) => {
    const { status, body } = await call(operation, bearer(revoked));
    expect({ status, code: body.code }).toEqual({ status: 401, code: "invalid_api_key" });
  });
});

describe("a key of an organization, with every scope", () => {
  test.each(operators)("is refused by $name, which is for the operator", async (operation) => {
    const { status, body } = await call(operation, bearer(daemon.apiKey));
    expect({ status, code: body.code, details: body.details }).toEqual({
      status: 403,
      code: "insufficient_scope",
      details: { required: "operator" },
    });
  });
});

describe("a key with every scope but one", () => {
  const keys = new Map<string, string>();
  beforeAll(async () => {
    for (const scope of new Set(scoped.map(({ access }) => access as Scope))) {
      const others = SCOPES.filter((each) => each !== scope && each !== "org:admin");
      keys.set(scope, (await makeKey(daemon, { scopes: others })).key);
    }
  });

  test.each(scoped)("is refused by $name", async (operation) => {
    const { status, body } = await call(operation, bearer(keys.get(operation.access) ?? ""));
    expect({ status, code: body.code, details: body.details }).toEqual({
      status: 403,
      code: "insufficient_scope",
      details: { required: operation.access },
    });
  });

  test.each(scoped)("is refused by $name before any lookup", async (operation) => {
    const nowhere = { room_id: "no-such-room", org_id: "org_none" };
    const { body } = await call(operation, bearer(keys.get(operation.access) ?? ""), nowhere);
    expect(body.code).toBe("insufficient_scope");
  });
});

describe("another organization's key", () => {
  const ofKeys = guarded.filter(({ access }) => access !== "account");
  // A room to be created from a backup does not exist before.
  const existing = ofKeys.filter(({ name }) => name !== "room_from_backup");
  const named = existing.filter(({ params }) => "room_id" in params.properties || "org_id" in params.properties);
  const shown = ({ status, headers, body }: Answer) => ({
    status,
    headers: [...headers].filter(([name]) => !/^(date|x-request-id|ratelimit-\w+)$/.test(name)),
    body: { ...body, request_id: "" },
  });

  test("gets the same answers as before the room existed, from every operation with an ID in its path", async () => {
    const other = await makeOrg(daemon, "other");
    const own = { room_id: ROOM, org_id: daemon.orgId };
    const ask = (operation: Operation, id: Names) => call(operation, bearer(other.api_key), id);
    const before = await Promise.all(named.map(async (each) => shown(await ask(each, { ...own, org_id: "org_none" }))));
    await daemon.room(ROOM);
    await daemon.ok("POST", `/v1/rooms/${ROOM}/drive/write`, { path: "/notes.txt", content: "secret" });
    const after = await Promise.all(named.map(async (each) => shown(await ask(each, own))));
    for (const [index, { name }] of named.entries())
      expect({ name, ...after[index] }).toEqual({ name, ...before[index] });
    expect(before.map(({ status }) => status)).toEqual(named.map(() => 404));
    expect(named.length).toBeGreaterThan(20);
  });

  test("does not see the room in its own list, and may use the same name", async () => {
    const other = await makeOrg(daemon, "third");
    const list = await daemon.api("GET", "/v1/rooms", undefined, bearer(other.api_key));
    expect(list.body).toMatchObject({ org_id: other.org_id, items: [] });
    const made = await daemon.api("POST", "/v1/rooms", { room_id: "swept" }, bearer(other.api_key));
    expect(made.status).toBe(201);
    expect(made.body.room_uid).not.toBe((await daemon.ok("GET", "/v1/rooms/swept")).room_uid);
  });
});

describe("a key that is bound to rooms", () => {
  test("sees only those, and cannot detect the others", async () => {
    await daemon.room("bound-in");
    const { key } = await makeKey(daemon, { rooms: ["bound-in", "bound-later"] });
    const as = (method: string, path: string, body?: unknown) => daemon.api(method, path, body, bearer(key));
    expect((await as("GET", "/v1/rooms")).body.items.map((room: { room_id: string }) => room.room_id)).toEqual([
      "bound-in",
    ]);
    expect((await as("GET", "/v1/rooms/bound-in")).status).toBe(200);
    expect((await as("GET", "/v1/rooms/swept")).body).toMatchObject({
      code: "room_not_found",
      detail: expect.stringContaining("swept"),
    });
    expect((await as("POST", "/v1/rooms", { room_id: "bound-out" })).body.code).toBe("insufficient_scope");
    expect((await as("POST", "/v1/rooms", { room_id: "swept" })).body.code).toBe("insufficient_scope");
    expect((await as("POST", "/v1/rooms", { room_id: "bound-later" })).status).toBe(201);
    expect((await as("GET", "/v1/orgs/self/audit")).body.code).toBe("insufficient_scope");
    expect((await as("GET", "/v1/rooms/bound-in/audit")).status).toBe(200);
  });
});

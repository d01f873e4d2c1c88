/** Idempotency-Key: one effect and one response, for any number of retries through any transport. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey, until } from "../calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

const post = (path: string, body: unknown, key: string, headers: Record<string, string> = {}) =>
  daemon.api("POST", path, body, { "idempotency-key": key, ...headers });
const create = (roomId: string, key: string, headers: Record<string, string> = {}) =>
  post("/v1/rooms", { room_id: roomId }, key, headers);
const replayed = ({ headers }: Answer) => headers.get("idempotency-replayed");

test("a hundred concurrent identical calls create one room and get one answer", async () => {
  const answers = await Promise.all(Array.from({ length: 100 }, () => create("once", "hundred")));
  const made = answers.filter(({ status }) => status === 201);
  expect(made.length).toBeGreaterThan(0);
  expect(made.filter((answer) => replayed(answer) === null)).toHaveLength(1);
  expect(new Set(made.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  const others = new Set(answers.filter(({ status }) => status !== 201).map(({ body }) => body.code));
  expect([...others].filter((code) => code !== "idempotency_in_progress")).toEqual([]);

  // Callers that got `idempotency_in_progress` get the stored response later.
  const later = await Promise.all(Array.from({ length: 100 }, () => create("once", "hundred")));
  expect(new Set(later.map(({ body }) => JSON.stringify(body)))).toEqual(new Set([JSON.stringify(made[0]?.body)]));
  expect(later.every((answer) => answer.status === 201 && replayed(answer) === "true")).toBe(true);
  expect((await daemon.ok("GET", "/v1/rooms")).items).toHaveLength(1);
});

test("a call in progress is 409 and retryable", async () => {
  let round = 0;
  const early = await until(
    async () => {
      const name = `running-${round++}`;
      const answers = await Promise.all(Array.from({ length: 50 }, () => create(name, name)));
      return answers.find(({ body }) => body.code === "idempotency_in_progress");
    },
    (answer) => answer !== undefined,
  );
  expect(early).toMatchObject({ status: 409, body: { retryable: true } });
  expect(early?.headers.get("retry-after")).toBe("1");
});

test("a replay is marked as such, and has the first answer with its Location", async () => {
  const first = await create("place", "place");
  const second = await create("place", "place");
  expect([first, second].map(replayed)).toEqual([null, "true"]);
  expect(second.status).toBe(201);
  expect(second.headers.get("location")).toBe("/v1/rooms/place");
  expect(second.body).toEqual(first.body);
  expect(second.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
});

test("another body under the same key is refused", async () => {
  await create("body", "body");
  const other = await post("/v1/rooms", { room_id: "body", labels: {} }, "body");
  expect(other).toMatchObject({ status: 422, body: { code: "idempotency_key_reused" } });
  // Nor is it taken for the first one.
  expect((await create("body", "body")).status).toBe(201);
});

test("a client error is stored as well", async () => {
  await create("taken", "first");
  const refused = await create("taken", "second");
  expect(refused).toMatchObject({ status: 409, body: { code: "room_id_in_use" } });
  await daemon.ok("DELETE", "/v1/rooms/taken");
  const again = await create("taken", "second");
  expect(again.status).toBe(409);
  expect(replayed(again)).toBe("true");
  expect(again.headers.get("content-type")).toBe("application/problem+json");
  expect(again.body).toEqual(refused.body);
});

test("a call that fails validation may be corrected under the same key", async () => {
  const bad = await post("/v1/rooms", { room_id: "-" }, "fixed");
  expect(bad.status).toBe(422);
  expect((await create("fixed", "fixed")).status).toBe(201);
});

describe("the scope of a key", () => {
  test("is the path", async () => {
    await create("scope-a", "x");
    await create("scope-b", "y");
    const made = [];
    for (const room of ["scope-a", "scope-b"]) {
      made.push(await post(`/v1/rooms/${room}/drive/mkdir`, { path: "/d" }, "same"));
    }
    expect(made.map(({ status }) => status)).toEqual([201, 201]);
    expect(made.map(replayed)).toEqual([null, null]);
  });

  test("is the API key", async () => {
    const other = await makeKey(daemon);
    const own = await create("scope-key", "mine");
    const others = await create("scope-key", "mine", bearer(other.key));
    expect(own.status).toBe(201);
    expect(others).toMatchObject({ status: 409, body: { code: "room_id_in_use" } });
    expect(replayed(others)).toBeNull();
  });

  test("is POST: a read is never answered from a stored response", async () => {
    await create("scope-read", "read");
    const headers = { "idempotency-key": "reading" };
    const first = await daemon.api("GET", "/v1/rooms/scope-read", undefined, headers);
    await daemon.ok("POST", "/v1/rooms/scope-read/drive/write", { path: "/f", content: "x" });
    const second = await daemon.api("GET", "/v1/rooms/scope-read", undefined, headers);
    expect([first.body.drive.file_count, second.body.drive.file_count]).toEqual([0, 1]);
    expect(replayed(second)).toBeNull();
  });
});

test.each(["a b", "ü", "x".repeat(256)])("the key %j is rejected", async (key) => {
  expect(await create("no-key", key)).toMatchObject({ status: 422, body: { errors: [{ field: "Idempotency-Key" }] } });
});

test("an answer survives a restart of the daemon", async () => {
  const first = await create("survives", "survives");
  await daemon.restart("SIGKILL");
  const second = await create("survives", "survives");
  expect(second.status).toBe(201);
  expect(replayed(second)).toBe("true");
  expect(second.body).toEqual(first.body);
});

test("a call that was interrupted by the daemon's end may be repeated", async () => {
  const keys = Array.from({ length: 40 }, (_, index) => `cut-${index}`);
  const answers = keys.map((key) => create(key, key).catch(() => null));
  await until(
    () => daemon.api("GET", "/v1/rooms?limit=1000"),
    ({ body }) => body.items.some((room: { room_id: string }) => room.room_id.startsWith("cut-")),
  );
  await daemon.restart("SIGKILL");
  const first = await Promise.all(answers);
  for (const [index, key] of keys.entries()) {
    const again = await create(key, key);
    const known = first[index];
    expect(again.status).toBe(201);
    if (known?.status === 201) expect(again.body).toEqual(known.body);
    expect((await daemon.api("GET", `/v1/rooms/${key}`)).status).toBe(200);
  }
});

test("a long query takes little space, and is distinguished from another", async () => {
  const long = (end: string) => `/v1/rooms?unknown=${"x".repeat(4000)}${end}`;
  const first = await post(long("1"), { room_id: "long-query" }, "long-query");
  const again = await post(long("1"), { room_id: "long-query" }, "long-query");
  expect([again.status, replayed(again)]).toEqual([201, "true"]);
  expect(again.body).toEqual(first.body);
  expect((await post(long("2"), { room_id: "long-query" }, "long-query")).body.code).toBe("idempotency_key_reused");
  using database = new Database(join(daemon.dataDir, "roomd.db"), { readonly: true });
  const row = database.query("SELECT body_sha256 AS asked FROM idempotency WHERE idempotency_key = 'long-query'").get();
  expect((row as { asked: string }).asked.length).toBeLessThan(512);
});

test("another query under the same key is a different call, and refused", async () => {
  await create("query", "query");
  const other = await post("/v1/rooms?wait=none", { room_id: "query" }, "query");
  expect(other).toMatchObject({ status: 422, body: { code: "idempotency_key_reused" } });
});

/** Calls of a key above its rate: the rate limit headers of each response, the refused callers, and the audit records. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Answer, TestDaemon } from "../harness/daemon.ts";
import { bare, bearer, makeKey, run } from "./calls.ts";

const AT_ONCE = 20;
/** So few a second that a test earns none back. */
const SLOW = { ROOMD_LIMITS_REQUESTS_PER_SECOND: "1", ROOMD_LIMITS_REQUESTS_AT_ONCE: String(AT_ONCE) };

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: SLOW });
});
afterAll(() => daemon.stop());

const limits = ({ headers }: Answer) =>
  ["limit", "remaining", "reset"].map((name) => Number(headers.get(`ratelimit-${name}`) ?? "NaN"));
const newKey = async () => (await makeKey(daemon)).key;
const ask = (key: string, method = "GET", path = "/v1/me", body?: string) =>
  bare(daemon, method, path, { ...bearer(key), "content-type": "application/json" }, body);
/** One may have been earned back since the last call, not two. */
const askLate: typeof ask = async (key, ...call) => {
  await ask(key);
  return await ask(key, ...call);
};
/** Calls until there are none left. */
const useUp = async (key: string) => {
  const { headers } = await ask(key);
  await Promise.all(Array.from({ length: Number(headers.get("ratelimit-remaining")) }, () => ask(key)));
};

test("every answer to a key, also a refusal, reports its remaining rate; other answers do not", async () => {
  const key = await newKey();
  const answers = [
    await ask(key),
    await ask(key, "GET", "/v1/rooms/none"),
    await ask(key, "POST", "/v1/rooms", "{"),
    await ask(key, "GET", "/v1/nothing"),
    await ask(key, "PATCH", "/v1/rooms"),
    await ask(key, "GET", "/health"),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 404, 400, 404, 405, 503]);
  for (const [n, answer] of answers.entries()) {
    const [limit = 0, remaining = 0, reset = 0] = limits(answer);
    expect(limit).toBe(AT_ONCE);
    // One may have been earned back on a slow machine.
    expect(remaining).toBeGreaterThanOrEqual(AT_ONCE - 1 - n);
    expect(remaining).toBeLessThan(AT_ONCE);
    expect(reset).toBeGreaterThanOrEqual(AT_ONCE - remaining - 1);
  }
  for (const path of ["/v1/me", "/health", "/v1/openapi.json"]) {
    expect(limits(await bare(daemon, "GET", path))).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  }
});

test("above the limit every route is 429 with Retry-After, after validation; other keys are unaffected", async () => {
  const [key, other] = [await newKey(), await newKey()];
  await useUp(key);
  for (const [method, path, body] of [
    ["GET", "/v1/me"],
    ["POST", "/v1/rooms", '{"room_id":"late"}'],
    ["GET", "/v1/nothing"],
  ] as const) {
    const answer = await askLate(key, method, path, body);
    expect(answer).toMatchObject({ status: 429, body: { code: "rate_limited", retryable: true } });
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(limits(answer)[1]).toBe(0);
  }
  expect((await askLate(key, "GET", "/v1/rooms/none")).body.code).toBe("room_not_found");
  expect((await askLate(key, "POST", "/v1/rooms", "{")).body.code).toBe("invalid_json");
  expect((await ask(other, "GET", "/v1/rooms/late")).body.code).toBe("room_not_found");
});

test("a message counts as one additional call per 100 recipients", async () => {
  const key = await newKey();
  expect((await ask(key, "POST", "/v1/rooms", '{"room_id":"crowd"}')).status).toBe(201);
  const to = (count: number) =>
    JSON.stringify({ source: "a", destinations: Array.from({ length: count }, (_, n) => `agent-${n}`), payload: "x" });
  const used = async (count: number) => {
    const [, before = 0] = limits(await ask(key));
    const [, after = 0] = limits(await ask(key, "POST", "/v1/rooms/crowd/messages", to(count)));
    return before - after;
  };
  expect(await used(99)).toBeLessThanOrEqual(1);
  // One token may have been refilled in the meantime.
  expect(await used(500)).toBeGreaterThanOrEqual(5);
  expect(await used(500)).toBeLessThanOrEqual(6);
});

test("a waiting call counts once, however long", async () => {
  const key = await newKey();
  expect((await ask(key, "POST", "/v1/rooms", '{"room_id":"waits"}')).status).toBe(201);
  const before = limits(await ask(key))[1] ?? 0;
  await ask(key, "GET", "/v1/rooms/waits/messages?agent_id=ann&wait_ms=300");
  expect(limits(await ask(key))[1]).toBeGreaterThanOrEqual(before - 2);
});

test("a rotated key has the remaining rate of its predecessor", async () => {
  const made = await makeKey(daemon);
  const rotated = await run(daemon, "key", "rotate", made.key_id, "--grace", "1h");
  const again = await run(daemon, "key", "rotate", rotated.key_id, "--grace", "1h");
  // One call per second is refilled: the bucket is emptied immediately before the check.
  await useUp(made.key);
  for (const { key } of [rotated, again]) expect((await askLate(key)).body.code).toBe("rate_limited");
  expect(again.first_key_id).toBeUndefined();
});

test("refused calls are audited as a count, not individually", async () => {
  const key = await newKey();
  const keyId = (await ask(key)).body.key_id;
  await useUp(key);
  const answers = await Promise.all(Array.from({ length: 200 }, () => ask(key)));
  const refused = answers.filter(({ status }) => status === 429).length;
  expect(refused).toBeGreaterThan(150);
  await daemon.restart("SIGTERM");
  const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=quota.rate_limited&limit=1000");
  const [own, ...more] = items.filter(({ actor }: { actor: { id: string } }) => actor.id === keyId);
  expect(more).toEqual([]);
  expect(own).toMatchObject({
    outcome: "denied",
    status: 429,
    error_code: "rate_limited",
    details: { count: refused },
  });
});

test("the limits are published", async () => {
  const { limits } = await daemon.ok("GET", "/v1/config");
  expect(limits).toMatchObject({ requests_per_second_max: 1, requests_at_once_max: AT_ONCE });
});

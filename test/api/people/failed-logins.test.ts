/** Invalid keys: an address that has sent too many gets `rate_limited` with a time to retry, and the audit has all of them. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer } from "../calls.ts";

const LIMIT = 5;
const WRONG = `key-${"A".repeat(43)}`;

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_LIMITS_FAILED_LOGINS: String(LIMIT) } });
});
afterAll(() => daemon.stop());

/** Rows on disk, without the daemon's pending writes. */
function recorded<Row>(daemon: TestDaemon, query: string): Row[] {
  using database = new Database(join(daemon.dataDir, "roomd.db"), { readonly: true });
  return database.query(query).all() as Row[];
}

const ask = (key: string, path = "/v1/me") => bare(daemon, "GET", path, bearer(key));

test("failed logins above the limit get 429 on every route; valid keys and anonymous calls are unaffected", async () => {
  const statuses: number[] = [];
  for (let n = 0; n < LIMIT * 3; n++) statuses.push((await ask(WRONG)).status);
  expect(statuses.slice(0, LIMIT)).toEqual(Array(LIMIT).fill(401));
  const refused = statuses.filter((status) => status === 429).length;
  expect(refused + statuses.filter((status) => status === 401).length).toBe(statuses.length);
  expect(refused).toBeGreaterThan(LIMIT);
  for (const path of ["/v1/rooms", "/v1/nothing", "/v1/me"]) {
    // One attempt may have been refilled in the meantime, not two.
    await ask(WRONG, path);
    const { status, headers, body } = await ask(WRONG, path);
    expect([path, status, body.code, body.retryable]).toEqual([path, 429, "rate_limited", true]);
    expect(Number(headers.get("retry-after"))).toBe(60 / LIMIT);
  }
  expect((await ask(daemon.apiKey)).status).toBe(200);
  expect((await bare(daemon, "GET", "/v1/me")).body.code).toBe("missing_credentials");
  expect((await ask(WRONG, "/health")).body.capacity).toBeUndefined();
});

test("failed logins are all audited: few individually, the rest as a count", async () => {
  const COUNT = 400;
  const lanes = Array.from({ length: 8 }, async () => {
    for (let n = 0; n < COUNT / 8; n++) await ask(WRONG, n % 2 === 0 ? "/v1/me" : "/health");
  });
  await Promise.all(lanes);
  await daemon.end("SIGTERM");
  const rows = recorded<{ ip: string; details: string }>(
    daemon,
    "SELECT ip, details FROM audit WHERE event = 'auth.failed'",
  );
  const total = rows.reduce((sum, { details }) => sum + ((JSON.parse(details) as { count?: number }).count ?? 1), 0);
  // And the 22 of the test before.
  expect(total).toBe(COUNT + LIMIT * 3 + 7);
  expect(rows.length).toBeLessThan(total / 2);
  expect(new Set(rows.map(({ ip }) => ip))).toEqual(new Set(["127.0.0.1"]));
  expect(JSON.stringify(rows)).not.toContain(WRONG);
});

test("failed logins are on disk before they are answered, as are calls outside a key's scopes", async () => {
  await using fresh = await TestDaemon.start();
  const scopes = ["rooms:read"];
  const { key } = await fresh.ok("POST", "/v1/orgs/self/keys", { name: "narrow", scopes });
  const denied = () => recorded<{ event: string }>(fresh, "SELECT event FROM audit WHERE outcome = 'denied'");
  const events: string[] = [];
  for (let n = 0; n < 5; n++) {
    for (const [path, token, status, event] of [
      ["/v1/me", WRONG, 401, "auth.failed"],
      ["/v1/nothing", WRONG, 401, "auth.failed"],
      ["/mcp", WRONG, 401, "auth.failed"],
      ["/v1/orgs/self/usage", key, 403, "usage.read"],
    ] as const) {
      expect([path, (await bare(fresh, "GET", path, bearer(token))).status]).toEqual([path, status]);
      events.push(event);
      expect(denied()).toHaveLength(events.length);
    }
  }
});

/** How many calls with an Idempotency-Key are remembered: of too many the oldest go, but none that may be under way. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { IdempotencyStorageLimit } from "../../../../daemon/edge/pipeline/idempotency-removal.ts";

const MOST = 20;
const NOW = Date.now();
const DAY_MS = 24 * 3600 * 1000;
let connection: Connection;
let database: Database;
let space: IdempotencyStorageLimit;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  space = new IdempotencyStorageLimit(database, { largeOfKey: 1e6, ofOrg: 1e6, calls: MOST });
});
afterEach(() => database.close());

const moment = (ms: number) => new Date(ms).toISOString();
const callOf = (n: number, org_id: string) => ({
  ...{ org_id, key_id: `kid_${org_id}`, method: "POST", path: "/", idempotency_key: `${n}`, body_sha256: "same" },
});

/** Claims a call as the road does, and has it answered or not. */
const make = (n: number, { org = "org_1", status = 200 as number | null, agoMs = 1000 - n } = {}) =>
  database.commit((queries) => {
    const call = callOf(n, org);
    space.dropOld(call, moment(NOW - DAY_MS));
    queries.run(sql`INSERT INTO idempotency (org_id, key_id, method, path, idempotency_key, body_sha256, status, created_at)
      VALUES (${org}, ${call.key_id}, 'POST', '/', ${call.idempotency_key}, 'same', ${status}, ${moment(NOW - agoMs)})`);
  });
const known = (org = "org_1") =>
  database.queries
    .all<{ n: number }>(
      sql`SELECT CAST(idempotency_key AS INTEGER) AS n FROM idempotency WHERE org_id = ${org} ORDER BY n`,
    )
    .map(({ n }) => n);
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

test("above the limit the oldest are evicted; other organizations lose none", async () => {
  for (let n = 0; n < 5; n++) await make(n, { org: "org_2" });
  for (let n = 0; n < 3 * MOST; n++) await make(n);
  expect(known()).toEqual(range(2 * MOST, 3 * MOST));
  expect(known("org_2")).toEqual(range(0, 5));
});

test("the count equals the rows, also in a later daemon, after a rollback and for a repeated call", async () => {
  for (let n = 0; n < MOST; n++) await make(n);
  for (let at = 0; at < 10; at++) {
    const taken = database.commit(() => {
      space.dropOld(callOf(1000 + at, "org_1"), moment(NOW - DAY_MS));
      throw new Error("refused");
    });
    await expect(taken).rejects.toThrow("refused");
    await database.commit(() => space.dropOld(callOf(MOST - 1, "org_1"), moment(NOW - DAY_MS)));
  }
  expect(known()).toEqual(range(0, MOST));
  space = new IdempotencyStorageLimit(database, { largeOfKey: 1e6, ofOrg: 1e6, calls: MOST });
  await make(MOST);
  expect(known()).toEqual(range(1, MOST + 1));
});

test("the sums of organizations and keys equal the rows after any change of these", async () => {
  const { queries } = database;
  const expectEqual = (subjects: number) => {
    const sums = queries.all(sql`SELECT * FROM idempotency_use ORDER BY kind, subject`);
    const rows = sql`SELECT 'org' AS kind, org_id AS subject, kept_bytes AS bytes FROM idempotency
      UNION ALL SELECT 'key', key_id, reply_bytes FROM idempotency`;
    expect(sums).toHaveLength(subjects);
    expect(sums).toEqual(
      queries.all(
        sql`SELECT kind, subject, count(*) AS calls, sum(bytes) AS bytes FROM (${rows}) GROUP BY 1, 2 ORDER BY 1, 2`,
      ),
    );
  };
  for (let n = 0; n < 30; n++) await make(n, { org: `org_${n % 3}` });
  expectEqual(6);
  const number = sql`CAST(idempotency_key AS INTEGER)`;
  for (const factor of [3, 2]) {
    queries.run(
      sql`UPDATE idempotency SET kept_bytes = ${factor} * ${number}, reply_bytes = ${number} - ${number} % 7`,
    );
    expectEqual(6);
  }
  // A person repeats a call in another organization.
  queries.run(sql`UPDATE idempotency SET org_id = 'org_3' WHERE ${number} % 4 = 0 OR org_id = 'org_2'`);
  expectEqual(6);
  queries.run(sql`DELETE FROM idempotency WHERE ${number} % 5 <> 0 OR org_id = 'org_1'`);
  expectEqual(4);
  queries.run(sql`DELETE FROM idempotency`);
  expectEqual(0);
});

test("a call without a response may be in progress: it is evicted only if too old, or at twice the limit", async () => {
  const underWay = range(0, 12);
  for (const n of underWay) await make(n, { status: null });
  for (let n = 12; n < 2 * MOST; n++) await make(n);
  expect(known()).toEqual(expect.arrayContaining(underWay));
  expect(known().length).toBeLessThanOrEqual(2 * MOST);
  for (let n = 2 * MOST; n < 4 * MOST; n++) await make(n);
  expect(known().filter((n) => n < 12).length).toBeLessThan(10);
  expect(known().length).toBeLessThanOrEqual(MOST + 10);
  await make(500, { org: "org_3", status: null, agoMs: 3 * 3600 * 1000 });
  for (let n = 501; n < 501 + MOST; n++) await make(n, { org: "org_3" });
  expect(known("org_3")).toEqual(range(501, 501 + MOST));
});

test("calls of over a day ago are deleted for inactive organizations too", async () => {
  for (let n = 0; n < 15; n++) await make(n, { org: "org_0", agoMs: DAY_MS - 60_000 });
  for (let n = 0; n < 15; n++) await make(n, { org: "org_9", agoMs: DAY_MS - 60_000 });
  database.queries.run(sql`UPDATE idempotency SET created_at = ${moment(NOW - DAY_MS - 1)} WHERE org_id <> 'org_1'`);
  for (let n = 0; n < 8; n++) await make(n);
  expect([known("org_0"), known("org_9")]).toEqual([[], []]);
});

test("its queries use an index alone, for responses of any length", () => {
  const plans = [
    "SELECT key_id FROM idempotency WHERE org_id = 'o' AND kept_bytes > 0 ORDER BY created_at LIMIT 1",
    "SELECT min(org_id) FROM idempotency WHERE org_id > 'o'",
  ].map((query) => database.queries.all<{ detail: string }>(sql.raw(`EXPLAIN QUERY PLAN ${query}`)));
  for (const plan of plans) {
    expect(plan.map(({ detail }) => detail).join()).toMatch(/^SEARCH idempotency USING COVERING INDEX \w+ \([^)]*\)$/);
  }
});

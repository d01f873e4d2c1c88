/** Keys that have ended: any number of them are in nobody's way. */

import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MAKER_RULES } from "../../../../daemon/compose/made.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { makeOrgChanges } from "../../../../daemon/domain/orgs/changes.ts";
import { type NewKey, newKey, rotationOf } from "../../../../daemon/domain/orgs/keys.ts";
import { isKeyOver } from "../../../../daemon/domain/orgs/made.ts";
import { countKeys, insertKey, insertOrg } from "../../../../daemon/domain/orgs/store.ts";
import type { KeyRow } from "../../../../daemon/domain/orgs/table.ts";
import type { Scope } from "../../../../shared/api/contract.ts";
import { MAX_KEYS_A_DAY, MAX_ROTATIONS_A_DAY } from "../../../../shared/api/orgs.ts";
import { newId, ulidFrom } from "../../../../shared/ids.ts";
import { watchStatements } from "../../../harness/watched-statements.ts";

const NOW = "2026-06-01T00:00:00.000Z";
const BEFORE = "2026-01-01T00:00:00.000Z";
const AFTER = "2027-01-01T00:00:00.000Z";
const org_id = newId("org");
/** Keys of users that need not be there. */
const RULES = { ...MAKER_RULES, requireMaker: () => {} };

let connection: Connection;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  insertOrg(connection.queries, { org_id, name: "org", plan: "free", created_at: BEFORE });
});
afterEach(() => connection.close());

function add(more: Partial<KeyRow> = {}, asked: Partial<NewKey> = {}): KeyRow {
  const { row } = newKey({ org_id, kind: "api", name: "k", maker: { type: "user", id: newId("usr") }, ...asked });
  insertKey(connection.queries, { ...row, ...more });
  return { ...row, ...more };
}

test("are not looked at to count those that are good", () => {
  add();
  add({ expires_at: AFTER });
  add({ expires_at: BEFORE });
  add({ revoked_at: BEFORE });
  add({ expires_at: AFTER, revoked_at: BEFORE });
  using watched = watchStatements(/^select count/i);
  expect(countKeys(connection.queries, org_id, NOW)).toBe(2);
  for (const { sql: text } of watched.runs) {
    const plan = connection.queries.all<{ detail: string }>(
      sql.raw(`EXPLAIN QUERY PLAN ${text.replaceAll("?", "'1'")}`),
    );
    expect(plan.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/^SEARCH api_keys USING COVERING INDEX api_keys_open \(org_id=\? AND expires_at[=>]\?/),
    ]);
  }
  expect(watched.runs).toHaveLength(2);
});

test("are made so many of in 24 hours, by the index of an organization's keys", async () => {
  const made = add({ revoked_at: BEFORE });
  const columns = Object.keys(made).filter((name) => name !== "key_id" && name !== "key_sha256");
  const others = (count: number, front: string) =>
    connection.execute(`
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
      INSERT INTO api_keys (key_id, key_sha256, ${columns.join(", ")})
      SELECT '${front}' || n, key_sha256 || '${front}' || n, ${columns.join(", ")} FROM api_keys, numbers WHERE key_id = '${made.key_id}'`);
  // Of two days ago, and since.
  others(MAX_KEYS_A_DAY, newId("kid", ulidFrom(Date.now() - 2 * 86_400_000, new Uint8Array(0))));
  others(MAX_KEYS_A_DAY - 2, made.key_id);
  const changes = makeOrgChanges(makeDatabase(connection), RULES);
  const another = () =>
    changes.addKey(
      newKey({ org_id, kind: "api", name: "k", maker: { type: "user", id: newId("usr") } }).row,
      (_, { key_id }) => key_id,
    );
  using watched = watchStatements(/^select count/i);
  await another();
  await expect(another()).rejects.toMatchObject({ code: "quota_exceeded" });
  const text = watched.runs.at(-1)?.sql ?? "";
  const plan = connection.queries.all<{ detail: string }>(sql.raw(`EXPLAIN QUERY PLAN ${text.replaceAll("?", "'1'")}`));
  expect(plan.map(({ detail }) => detail).join()).toContain(
    "USING COVERING INDEX api_keys_by_org (org_id=? AND key_id>?)",
  );
});

test("are rotated, and made by the operator, whatever others have made that day", async () => {
  const made = add({ revoked_at: BEFORE });
  const columns = Object.keys(made).filter((name) => name !== "key_id" && name !== "key_sha256");
  connection.execute(`
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${MAX_KEYS_A_DAY})
    INSERT INTO api_keys (key_id, key_sha256, ${columns.join(", ")})
    SELECT '${made.key_id}' || n, key_sha256 || n, ${columns.join(", ")} FROM api_keys, numbers WHERE key_id = '${made.key_id}'`);
  const changes = makeOrgChanges(makeDatabase(connection), RULES);
  const maker = { type: "user", id: newId("usr") };
  let current = add();
  const rotate = async () => {
    current = await changes.rotateKey(
      current.key_id,
      (old) => rotationOf(old, 0, maker),
      (_, { row }) => row,
    );
  };
  for (let n = 0; n < MAX_ROTATIONS_A_DAY; n++) await rotate();
  await expect(rotate()).rejects.toMatchObject({ code: "quota_exceeded" });
  const byOperator = newKey({ org_id, kind: "api", name: "k", maker: { type: "operator", id: "operator" } }).row;
  expect(await changes.addKey(byOperator, (_, { key_id }) => key_id)).toBe(byOperator.key_id);
});

test("of one line may be any number, of which one that is valid is found by an index", () => {
  const first = add();
  const over = sql`SELECT ${isKeyOver(first.key_id, { isPersonal: true })} AS over`;
  expect(connection.queries.all(over)).toEqual([{ over: 0 }]);
  const plan = connection.queries.all<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${over}`);
  expect(plan.map(({ detail }) => detail).join()).not.toMatch(/SCAN (own|line)/);
});

test("of somebody may be more than a statement has places, when that one leaves, or may less", async () => {
  const user_id = newId("usr");
  const own = { maker: { type: "user", id: user_id } };
  const reading = add({ scopes: ["rooms:read"] }, own);
  const giving = add({ expires_at: AFTER }, own);
  const given = add({}, { maker: { type: "key", id: giving.key_id } });
  const others = add();
  const ended = add({ revoked_at: BEFORE }, own);
  const columns = Object.keys(ended).filter((name) => name !== "key_id" && name !== "key_sha256");
  connection.execute(`
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 251000)
    INSERT INTO api_keys (key_id, key_sha256, ${columns.join(", ")})
    SELECT key_id || n, key_sha256 || n, ${columns.join(", ")} FROM api_keys, numbers WHERE key_id = '${ended.key_id}'`);
  const changes = makeOrgChanges(makeDatabase(connection), RULES);
  const end = (gives: readonly Scope[]) =>
    changes.endAccess(org_id, user_id, { require: () => {}, gives, change: () => {} }, (_queries, { keys }) =>
      keys.map(({ key_id }) => key_id).sort(),
    );
  expect(await end(["rooms:read"])).toEqual([giving.key_id, given.key_id].sort());
  expect(await end([])).toEqual([reading.key_id]);
  const left = connection.queries.all<KeyRow>(sql`SELECT * FROM api_keys WHERE NOT ended_with_maker`);
  expect(left.map(({ key_id, revoked_at }) => [key_id, revoked_at])).toEqual([[others.key_id, null]]);
});

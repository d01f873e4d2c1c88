/** Keys that have ended: any number of them are in nobody's way. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type NewKey, newKey } from "../../../../daemon/domain/orgs/keys.ts";
import { deleteSshKeysBy } from "../../../../daemon/domain/orgs/ssh-keys-store.ts";
import { countKeys, insertKey, insertOrg, lineOf } from "../../../../daemon/domain/orgs/store.ts";
import type { KeyRow } from "../../../../daemon/domain/orgs/table.ts";
import { newId } from "../../../../shared/ids.ts";
import { watchStatements } from "../../../harness/watched-statements.ts";

const NOW = "2026-06-01T00:00:00.000Z";
const BEFORE = "2026-01-01T00:00:00.000Z";
const AFTER = "2027-01-01T00:00:00.000Z";
const org_id = newId("org");

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

test("of one line may be more than a statement has places", () => {
  const first = add();
  const line = [
    ...lineOf(connection.queries, first),
    ...Array.from({ length: 40_000 }, () => ({ key_id: newId("kid") })),
  ];
  expect(deleteSshKeysBy(connection.queries, line)).toEqual([]);
});

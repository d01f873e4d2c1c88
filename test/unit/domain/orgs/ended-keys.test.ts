/** Ended API keys are removed after 30 days, in pieces, but for keys that another one depends on. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MAKER_RULES } from "../../../../daemon/compose/made.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { makeOrgChanges } from "../../../../daemon/domain/orgs/changes.ts";
import { dropEndedKeys } from "../../../../daemon/domain/orgs/ended-keys.ts";
import { insertRow } from "../../../harness/durability/insert-row.ts";
import { boundOf, longestTurn } from "../../../harness/event-loop/longest-turn.ts";

let connection: Connection;
let database: Database;

beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
});
afterEach(() => database.close());

const drop = () => dropEndedKeys(database.queries, makeOrgChanges(database, MAKER_RULES));
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
const addKey = (key_id: string, values: Record<string, string> = {}) =>
  insertRow(connection, database, "api_keys", { key_id, kind: "api", key_sha256: `hash ${key_id}`, ...values });
const left = () =>
  database.queries
    .all<{ key_id: string }>(sql`SELECT key_id FROM api_keys ORDER BY key_id`)
    .map(({ key_id }) => key_id);

test("keys whose line ended 30 days ago are removed, except keys that another one depends on", async () => {
  const [old, late] = [daysAgo(31), daysAgo(29)];
  addKey("good");
  addKey("to expire", { expires_at: daysAgo(-1) });
  addKey("ended late", { revoked_at: late });
  addKey("expired, revoked since", { revoked_at: late, expires_at: old });
  addKey("revoked", { revoked_at: old });
  addKey("grant", { kind: "oauth", revoked_at: old });
  addKey("rotated", { revoked_at: old });
  addKey("rotated again", { expires_at: old, first_key_id: "rotated" });
  addKey("successor", { first_key_id: "rotated" });
  addKey("line", { revoked_at: old });
  addKey("line, second", { revoked_at: old, first_key_id: "line" });
  addKey("maker", { revoked_at: old });
  addKey("made", { created_by_id: "maker" });
  await drop();
  const stay = ["good", "to expire", "ended late", "grant", "rotated", "rotated again", "successor", "maker", "made"];
  expect(left()).toEqual(stay.sort());
});

test("many keys are removed in pieces, also among many that stay", async () => {
  const old = daysAgo(40);
  connection.execute(`
    INSERT INTO api_keys (key_id, kind, name, key_sha256, key_prefix, scopes, created_at, expires_at, created_by_id)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
      SELECT 'key ' || i, 'api', '', 'hash ' || i, '', '[]', '', '${old}', CASE WHEN i % 2 THEN 'key ' || (i + 1) ELSE 'user' END FROM n`);
  connection.execute("UPDATE api_keys SET expires_at = NULL WHERE substr(key_id, -1) IN ('1', '3')");
  const longest = await longestTurn(() => drop());
  expect(longest).toBeLessThan(boundOf(20));
  // Of each pair the made key goes first.
  await drop();
  expect(left()).toHaveLength(8_000);
}, 60_000);

/**
 * Every table that can name a person defines the effect of export and erasure on it: otherwise an export would miss it, and erasure would
 * leave it.
 */
import { getTableName, sql } from "drizzle-orm";
import { afterAll, expect, test } from "vitest";
import { PERSONAL } from "../../daemon/compose/personal.ts";
import { openConnection } from "../../daemon/db/client.ts";
import { migrate } from "../../daemon/db/migrate.ts";

const NAMES =
  /^(user_id|person_id|email|address|created_by_id|made_by_id|to_address|recipient|owner_id|ip|user_agent)$/;
/** Columns with the name of a personal one that identify no person, and the reason. */
const OF_NOBODY: Record<string, string> = {
  audit: "records are hashed: people go by their ids there, and records by their time",
  egress_destinations: "the addresses of servers that a sandbox connected to",
  oauth_devices: "the address of a device that asks; nobody is known by it, and it goes after ten minutes",
  hosts: "the address of a host",
  rooms: "a room is made by a key",
  sandboxes: "a sandbox is made by a key",
  snapshots: "a snapshot is made by a key",
  checkpoints: "a checkpoint is made by a key",
  webhooks: "a webhook is made by a key",
};

const connection = openConnection(":memory:");
migrate(connection);
afterAll(() => connection.close());

test("every column with personal data is on the list of daemon/compose/personal.ts", () => {
  const columns = connection.queries.all<{ table: string; column: string }>(
    sql`SELECT m.name AS "table", c.name AS "column" FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`,
  );
  const listed = new Map(
    PERSONAL.map(({ table, ids, addresses = [] }) => [
      getTableName(table),
      [...ids, ...addresses].map(({ name }) => name),
    ]),
  );
  const missing = columns.filter(({ table, column }) => {
    if (!NAMES.test(column) || table in OF_NOBODY) return false;
    const named = listed.get(table);
    // Of a row that goes with its person all goes.
    const isGone = PERSONAL.some((each) => getTableName(each.table) === table && each.end === "deleted");
    return !named || !(named.includes(column) || isGone);
  });
  expect(missing.map(({ table, column }) => `${table}.${column}`)).toEqual([]);
});

/** Wake reasons and the idle action: defaults, exact lists, and the rows of before. */
import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { openConnection } from "../../../../daemon/db/client.ts";
import { MIGRATIONS, migrate } from "../../../../daemon/db/migrate.ts";
import { lifecycleOf } from "../../../../daemon/domain/sandboxes/lifecycle.ts";

const ALL = ["api", "terminal", "message", "port"];

test.each([
  ["by default everything wakes it", {}, ALL],
  ["with an idle action too", { lifecycle: { on_idle: "hibernate" as const } }, ALL],
  ["a list is exact", { lifecycle: { wake_on: ["port" as const, "port" as const] } }, ["port"]],
  ["nothing wakes it after an empty list", { lifecycle: { wake_on: [] } }, []],
])("%s", (_, input, wake_on) => {
  expect(lifecycleOf(input).wake_on).toEqual(wake_on);
});

test("a change of the idle action leaves the list as it is", () => {
  const row = { idle_timeout_seconds: null, on_idle: "destroy" as const, wake_on: [] };
  expect(lifecycleOf({ lifecycle: { on_idle: "hibernate" } }, row)).toMatchObject({
    on_idle: "hibernate",
    wake_on: [],
  });
});

test("rows that have a former default get the present one, and lists that were given stay", () => {
  const connection = openConnection(":memory:");
  const before = MIGRATIONS.findIndex((statements) => statements.includes("By default everything wakes a sandbox"));
  for (const statements of MIGRATIONS.slice(0, before)) connection.execute(statements);
  connection.execute(`PRAGMA user_version = ${before}`);
  const columns = connection.queries
    .all<{ name: string; type: string; notnull: number; dflt_value: string | null }>(sql`PRAGMA table_info(sandboxes)`)
    .filter(({ notnull, dflt_value, name }) => notnull && dflt_value === null && name !== "sandbox_id");
  const rows = [
    ["default_destroy", "destroy", "[]"],
    ["default_rest", "hibernate", '["api","message"]'],
    ["given_none", "standby", "[]"],
    ["given_port", "destroy", '["port"]'],
  ];
  connection.execute("PRAGMA foreign_keys = OFF");
  for (const [id, on_idle, wake_on] of rows) {
    const given: Record<string, string> = { sandbox_id: `'${id}'`, on_idle: `'${on_idle}'`, wake_on: `'${wake_on}'` };
    for (const [index, { name, type }] of columns.entries()) {
      given[name] ??= type === "INTEGER" ? `${9100 + rows.findIndex(([each]) => each === id) + index}` : `'${id}'`;
    }
    given.state = "'running'";
    given.egress_mode = "'none'";
    for (const flag of ["cid_held", "guest_net", "fabric_attached"]) given[flag] = "1";
    connection.execute(`INSERT INTO sandboxes (${Object.keys(given)}) VALUES (${Object.values(given)})`);
  }
  migrate(connection);
  const after = connection.queries.all<{ sandbox_id: string; wake_on: string }>(
    sql`SELECT sandbox_id, wake_on FROM sandboxes ORDER BY sandbox_id`,
  );
  expect(after.map(({ sandbox_id, wake_on }) => [sandbox_id, JSON.parse(wake_on)])).toEqual([
    ["default_destroy", ALL],
    ["default_rest", ALL],
    ["given_none", []],
    ["given_port", ["port"]],
  ]);
});

/**
 * Migrations after the initial schema, which run before the service answers: none rewrites a table, since its size is unknown. Fills
 * (db/fills.ts) rewrite tables in pieces, and the columns that they replace are dropped one release later.
 */
import { expect, test } from "vitest";
import { fillsOf, MIGRATIONS, type Migration } from "../../daemon/db/migrate.ts";
import { CONTRACTED } from "../harness/durability/next-version.ts";

/** Their time depends on the number of rows. An index cannot be made in pieces. */
const REWRITES = [
  /\bUPDATE\b/i,
  /\bDELETE\s+FROM\b/i,
  /\b(INSERT|REPLACE)\b[^;]*\bSELECT\b/i,
  /\bCREATE\s+(TEMP\w*\s+)?TABLE\b[^;(]*\bAS\s+(SELECT|WITH|VALUES)\b/i,
  /\bDROP\s+COLUMN\b/i,
  /\b(VACUUM|REINDEX)\b/i,
];

/** Statements of a trigger run later, for one row each. */
const withoutTriggers = (sql: string) => sql.replace(/\bCREATE\s+(TEMP\w*\s+)?TRIGGER\b[\s\S]*?\bEND\b/gi, "");
const withoutComments = (sql: string) => sql.replace(/--.*$/gm, "");
const isRewrite = ({ sql }: Migration) =>
  REWRITES.some((statement) => statement.test(withoutTriggers(withoutComments(sql))));

function faultsOf(migrations: readonly Migration[]): string[] {
  const [, ...later] = migrations;
  const fills = fillsOf(migrations).map(({ name }) => name);
  return later.flatMap((migration, index) => {
    const started = fillsOf(migrations.slice(0, index + 1)).map(({ name }) => name);
    return [
      ...(isRewrite(migration) ? [`rewrites a table: ${migration.sql}`] : []),
      ...(migration.fills ?? [])
        .filter(({ change }) => change.split("$piece").length !== 2 || change.includes("?"))
        .map(({ name }) => `the fill ${name} has no $piece, or more than that`),
      ...(migration.fills ?? [])
        .filter(({ name }) => fills.filter((each) => each === name).length > 1)
        .map(({ name }) => `there are two fills ${name}`),
      ...(migration.after ?? [])
        .filter((name) => !started.includes(name))
        .map((name) => `no earlier migration begins the fill ${name}`),
    ];
  });
}

test("no migration rewrites a table, and fills derive from existing data", () => {
  expect(faultsOf(MIGRATIONS)).toEqual([]);
  expect(faultsOf(CONTRACTED)).toEqual([]);
});

test.each([
  "UPDATE orgs SET name = ''",
  "update orgs set name = ''",
  "DELETE FROM orgs",
  "INSERT INTO agents_next SELECT * FROM agents",
  "INSERT INTO a\n  (b)\n  SELECT b FROM c",
  "REPLACE INTO a SELECT b FROM c",
  "CREATE TABLE a AS SELECT * FROM b",
  "ALTER TABLE orgs DROP COLUMN name",
  "VACUUM",
])("%s is a rewrite", (sql) => {
  expect(faultsOf([...MIGRATIONS, { sql }])).toEqual([`rewrites a table: ${sql}`]);
});

test.each([
  "ALTER TABLE orgs ADD COLUMN colour TEXT NOT NULL DEFAULT 'none'",
  "INSERT INTO fills (name) VALUES ('a')",
  "CREATE TRIGGER t AFTER INSERT ON agents BEGIN INSERT INTO a SELECT new.agent_id; UPDATE b SET c = 1; END",
  "DROP TABLE agents -- after an UPDATE",
])("%s is not a rewrite", (sql) => {
  expect(faultsOf([...MIGRATIONS, { sql }])).toEqual([]);
});

test("a fill that changes all rows in one statement, or is required by its own migration, is rejected", () => {
  const fill = { name: "f", table: "orgs", key: ["org_id"], change: "UPDATE orgs SET name = ''" };
  expect(faultsOf([...MIGRATIONS, { sql: "", fills: [fill], after: ["f"] }])).toEqual([
    "the fill f has no $piece, or more than that",
    "no earlier migration begins the fill f",
  ]);
});

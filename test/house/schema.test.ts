/** The tables as the queries see them against the tables that the migrations make. */
import { join } from "node:path";
import { is, sql } from "drizzle-orm";
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { afterAll, describe, expect, test } from "vitest";
import { openConnection } from "../../daemon/db/client.ts";
import { migrate } from "../../daemon/db/migrate.ts";
import { codeOf, ROOT } from "./sources.ts";

interface Column {
  name: string;
  type: string;
  not_null: boolean;
  key: boolean;
}

const connection = openConnection(":memory:");
migrate(connection);
afterAll(() => connection.close());

const files = codeOf("daemon").filter(({ text }) => /\bsqliteTable\(/.test(text));
const declared = await Promise.all(files.map(async ({ path }) => ({ path, tables: await tablesOf(path) })));

async function tablesOf(path: string): Promise<SQLiteTable[]> {
  const module: Record<string, unknown> = await import(join(ROOT, path));
  return Object.values(module).filter((value): value is SQLiteTable => is(value, SQLiteTable));
}

function columnsOfQueries(table: SQLiteTable): Column[] {
  const { columns, primaryKeys } = getTableConfig(table);
  const keyNames = new Set(primaryKeys.flatMap((key) => key.columns.map((column) => column.name)));
  return columns.map((column) => ({
    name: column.name,
    type: column.getSQLType().toUpperCase(),
    not_null: column.notNull,
    key: column.primary || keyNames.has(column.name),
  }));
}

function columnsOfDatabase(name: string): Column[] {
  const rows = connection.queries.all<{ name: string; type: string; notnull: number; pk: number }>(
    sql`SELECT * FROM pragma_table_info(${name})`,
  );
  return rows.map(({ name, type, notnull, pk }) => ({ name, type, not_null: notnull === 1, key: pk > 0 }));
}

describe("schema", () => {
  test("a file that calls sqliteTable exports its tables", () => {
    expect(declared.filter(({ tables }) => tables.length === 0).map(({ path }) => path)).toEqual([]);
  });

  test("every table of the database is declared once", () => {
    const made = connection.queries.all<{ name: string }>(
      sql`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
    );
    const names = declared.flatMap(({ tables }) => tables.map((table) => getTableConfig(table).name));
    expect(names.sort()).toEqual(made.map(({ name }) => name).sort());
  });

  for (const { path, tables } of declared) {
    for (const table of tables) {
      const { name } = getTableConfig(table);
      test(`${path} describes ${name} correctly`, () => {
        expect(columnsOfQueries(table)).toEqual(columnsOfDatabase(name));
      });
    }
  }
});

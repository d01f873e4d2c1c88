/** Rows of which a test names only the columns that matter to it. */
import { sql } from "drizzle-orm";
import type { Connection } from "../../../daemon/db/client.ts";
import type { Database } from "../../../daemon/db/transact.ts";

/** Inserts a row; other columns that may not be null, and have no default, are empty. */
export function insertRow(
  connection: Connection,
  { queries }: Database,
  table: string,
  values: Record<string, string | number>,
): void {
  const columns = queries.all<{ name: string; type: string }>(
    sql`SELECT name, type FROM pragma_table_info(${table}) WHERE "notnull" AND dflt_value IS NULL`,
  );
  const row = { ...Object.fromEntries(columns.map(({ name, type }) => [name, type === "TEXT" ? "'[]'" : "0"])) };
  for (const [name, value] of Object.entries(values)) row[name] = typeof value === "string" ? `'${value}'` : `${value}`;
  connection.execute(`INSERT INTO ${table} (${Object.keys(row).join()}) VALUES (${Object.values(row).join()})`);
}

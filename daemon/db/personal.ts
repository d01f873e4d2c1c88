/**
 * Personal data in a table: the columns that identify a person, the secret columns, and the effect of erasing the person. Each noun
 * declares this for its own tables; a house test finds undeclared ones.
 */
import { and, eq, getTableColumns, getTableName, or, type SQL, sql } from "drizzle-orm";
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Steps } from "../core/loop/index.ts";
import type { Queries } from "./client.ts";
import { locally } from "./dry-run.ts";

export interface PersonalTable {
  table: SQLiteTable;
  /** Columns that have the person's id. */
  ids: readonly SQLiteColumn[];
  /** Columns that have the person's address. */
  addresses?: readonly SQLiteColumn[];
  /** Never shown: credentials, and hashes of them. */
  secrets?: readonly string[];
  /** Deleted with the person; or kept, since it is the organization's: then its id refers to no person. */
  end: "deleted" | "kept";
  /** On a cluster, each host has rows of its own. */
  isHere?: true;
}

export interface Person {
  user_id: string;
  email: string;
  /** Time at which the address was verified; null: data under this address may be another person's. */
  verified_at: string | null;
}

export const nameOf = ({ table }: PersonalTable): string => getTableName(table);

/** Rows that one step reads. */
const ROWS_AT_ONCE = 200;

/** A person's rows in a table, without credentials, some in each step. */
export function* rowsAbout(
  queries: Queries,
  personal: PersonalTable,
  person: Person,
): Steps<Record<string, unknown>[]> {
  const { table, secrets = [] } = personal;
  const { primaryKeys, columns } = getTableConfig(table);
  const key = [...primaryKeys.flatMap((primary) => primary.columns), ...columns.filter((column) => column.primary)];
  const names = key.map((column) => nameIn(table, column));
  const listed = (values: readonly unknown[]) =>
    sql`(${sql.join(
      values.map((value) => sql`${value}`),
      sql`, `,
    )})`;
  const found: Record<string, unknown>[] = [];
  let after: SQL | undefined;
  let rows: Record<string, unknown>[];
  do {
    rows = queries
      .select()
      .from(table)
      .where(and(isAbout(personal, person), after))
      .orderBy(...key)
      .limit(ROWS_AT_ONCE)
      .all();
    after = sql`${listed(key)} > ${listed(names.map((name) => rows.at(-1)?.[name]))}`;
    for (const row of rows) {
      for (const name of secrets) delete row[name];
      found.push(row);
    }
    yield;
  } while (rows.length === ROWS_AT_ONCE);
  return found;
}

const nameIn = (table: SQLiteTable, column: SQLiteColumn): string =>
  Object.entries(getTableColumns(table)).find(([, each]) => each === column)?.[0] ?? column.name;

/** Within a transaction. */
export function forgetRows(queries: Queries, personal: PersonalTable, person: Person): void {
  if (personal.end !== "deleted") return;
  const remove = (within: Queries) => void within.delete(personal.table).where(isAbout(personal, person)).run();
  if (personal.isHere) locally(queries, remove);
  else remove(queries);
}

function isAbout({ ids, addresses = [] }: PersonalTable, { user_id, email, verified_at }: Person): SQL | undefined {
  const byAddress = verified_at === null ? [] : addresses.map((column) => eq(column, email));
  return ids.length + byAddress.length === 0 ? sql`0` : or(...ids.map((column) => eq(column, user_id)), ...byAddress);
}

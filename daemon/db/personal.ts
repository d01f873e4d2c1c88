/**
 * Owns what a table says of people: which of its columns name one, what of it never leaves, and what becomes of it when the person is
 * forgotten. Each noun says so of its own tables; a house test finds those that do not.
 */
import { eq, getTableColumns, getTableName, or, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Queries } from "./client.ts";
import { locally } from "./rehearsal.ts";

export interface PersonalTable {
  table: SQLiteTable;
  /** Columns that have the person's id. */
  ids: readonly SQLiteColumn[];
  /** Columns that have the person's address. */
  addresses?: readonly SQLiteColumn[];
  /** Never shown: what lets in, and hashes of it. */
  secrets?: readonly string[];
  /** Deleted with the person; or kept, since it is the organization's: the id in it then names nobody. */
  end: "deleted" | "kept";
  /** Where there are several hosts, each has rows of its own. */
  isHere?: true;
}

export interface Person {
  user_id: string;
  email: string;
  /** When the address was shown to be the person's own; null: what is another's may go by it. */
  verified_at: string | null;
}

export const nameOf = ({ table }: PersonalTable): string => getTableName(table);

/** What is kept of a person in a table, without what lets in. */
export function rowsAbout(queries: Queries, personal: PersonalTable, person: Person): Record<string, unknown>[] {
  const { table, secrets = [] } = personal;
  const shown = Object.entries(getTableColumns(table)).filter(([name]) => !secrets.includes(name));
  const columns = Object.fromEntries(shown) as Record<string, SQLiteColumn>;
  return queries.select(columns).from(table).where(isAbout(personal, person)).all();
}

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

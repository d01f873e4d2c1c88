/**
 * Rows of the cluster directory that this host's tables reject: stored separately and counted until they fit. The rest of the copy
 * continues without them.
 */
import { and, asc, count, eq, sql } from "drizzle-orm";
import { preparedBy, type Queries, rawValues } from "../db/client.ts";
import type { SharedRow, UnfitRow } from "../db/shared-rows.ts";
import { unfitRows } from "./table.ts";

type Name = Pick<SharedRow, "tbl" | "key">;

const isRow = ({ tbl, key }: Name) => and(eq(unfitRows.tbl, tbl), eq(unfitRows.key, key));

/** Counted up to this number. */
const MAX_COUNTED = 10_000;

export function countUnfit(queries: Queries): number {
  const some = queries.select({ tbl: unfitRows.tbl }).from(unfitRows).limit(MAX_COUNTED).as("some");
  return queries.select({ count: count() }).from(some).get()?.count ?? 0;
}

/** Names and reasons of up to `most` unfit rows. */
export function someUnfit(queries: Queries, most: number): (Name & { reason: string })[] {
  const { tbl, key, reason } = unfitRows;
  return queries.select({ tbl, key, reason }).from(unfitRows).limit(most).all();
}

const prepareAny = preparedBy((queries: Queries) => rawValues(queries, "SELECT 1 FROM unfit_rows LIMIT 1"));
const isAny = (queries: Queries) => prepareAny(queries)([]).length > 0;

export function isUnfit(queries: Queries, rows: readonly Name[]): boolean {
  return isAny(queries) && rows.some((row) => queries.select().from(unfitRows).where(isRow(row)).get() !== undefined);
}

/** Notes which of the written rows do not fit. Within the transaction that wrote them. */
export function noteUnfit(queries: Queries, brought: readonly SharedRow[], unfit: readonly UnfitRow[]): void {
  if (isAny(queries)) for (const row of brought) queries.delete(unfitRows).where(isRow(row)).run();
  for (const { tbl, key, row, reason } of unfit) {
    const value = { tbl, key, row, reason };
    const target = [unfitRows.tbl, unfitRows.key];
    queries.insert(unfitRows).values(value).onConflictDoUpdate({ target, set: value }).run();
  }
}

export function forgetUnfit(queries: Queries): void {
  queries.delete(unfitRows).run();
}

/** The next unfit rows, in order of their names. */
export function unfitAfter(queries: Queries, { tbl, key }: Name, most: number): SharedRow[] {
  return queries
    .select({ tbl: unfitRows.tbl, key: unfitRows.key, row: unfitRows.row })
    .from(unfitRows)
    .where(sql`(${unfitRows.tbl}, ${unfitRows.key}) > (${tbl}, ${key})`)
    .orderBy(asc(unfitRows.tbl), asc(unfitRows.key))
    .limit(most)
    .all();
}

/** Owns the SQL of usage; what is written with nearly every transaction is prepared. */
import { and, eq, getTableColumns, gte, lte, type SQL, sql, sum } from "drizzle-orm";
import type { OrgId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { AMOUNTS, type Amounts } from "./amounts.ts";
import { type OpenRow, type UsageRow, usage, usageOpen } from "./table.ts";

/** What can be told apart. */
export const DIMENSIONS = { room: usage.room_uid, agent: usage.agent_id, key: usage.key_id, day: usage.day } as const;
export type Dimension = keyof typeof DIMENSIONS;

const placeholders = (columns: object) =>
  Object.fromEntries(Object.keys(columns).map((name) => [name, sql.placeholder(name)]));

function prepare(queries: Queries) {
  const grown = AMOUNTS.map((name): [string, SQL] => [name, sql`${usage[name]} + ${sql.placeholder(name)}`]);
  const columns = getTableColumns(usageOpen);
  return {
    add: queries
      .insert(usage)
      .values(placeholders(getTableColumns(usage)) as never)
      .onConflictDoUpdate({
        target: [usage.org_id, usage.day, usage.room_uid, usage.agent_id, usage.key_id],
        set: Object.fromEntries(grown),
      })
      .prepare(),
    open: queries
      .insert(usageOpen)
      .values(placeholders(columns) as never)
      .onConflictDoUpdate({
        target: usageOpen.subject,
        set: Object.fromEntries(Object.keys(columns).map((name) => [name, sql.raw(`excluded.${name}`)])),
      })
      .prepare(),
  };
}

const prepared = new WeakMap<Queries, ReturnType<typeof prepare>>();

function statementsOf(queries: Queries): ReturnType<typeof prepare> {
  const known = prepared.get(queries) ?? prepare(queries);
  prepared.set(queries, known);
  return known;
}

export function addUsage(queries: Queries, row: UsageRow): void {
  statementsOf(queries).add.run({ ...row });
}

/** Whose use of a day has rows. */
export function listPlaces(queries: Queries, orgId: OrgId, day: string) {
  const { room_uid, agent_id, key_id } = usage;
  const ofDay = and(eq(usage.org_id, orgId), eq(usage.day, day));
  return queries.select({ room_uid, agent_id, key_id }).from(usage).where(ofDay).all();
}

/** Opens it, or puts it in place of what was open of the same subject. */
export function putOpen(queries: Queries, row: OpenRow): void {
  statementsOf(queries).open.run({ ...row });
}

export function getOpen(queries: Queries, subject: string): OpenRow | undefined {
  return queries.select().from(usageOpen).where(eq(usageOpen.subject, subject)).get();
}

export function removeOpen(queries: Queries, subject: string): void {
  queries.delete(usageOpen).where(eq(usageOpen.subject, subject)).run();
}

/** Of one organization, or of all. */
export function listOpen(queries: Queries, orgId?: OrgId): OpenRow[] {
  return queries
    .select()
    .from(usageOpen)
    .where(orgId === undefined ? undefined : eq(usageOpen.org_id, orgId))
    .all();
}

/** What was written of an organization's days, both included, for each value of a dimension. */
export function sumUsage(
  queries: Queries,
  orgId: OrgId,
  days: { from: string; to: string },
  by: Dimension,
): (Amounts & { group: string })[] {
  const sums = Object.fromEntries(AMOUNTS.map((name) => [name, sum(usage[name]).mapWith(Number)]));
  return queries
    .select({ group: DIMENSIONS[by], ...(sums as Record<keyof Amounts, SQL<number>>) })
    .from(usage)
    .where(and(eq(usage.org_id, orgId), gte(usage.day, days.from), lte(usage.day, days.to)))
    .groupBy(DIMENSIONS[by])
    .all();
}

/** SQL of usage; statements that run in nearly every transaction are prepared. */
import { and, eq, getTableColumns, gt, gte, lte, type SQL, sql, sum } from "drizzle-orm";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import { preparedBy, type Queries, rawQuery } from "../../../db/client.ts";
import { AMOUNTS, type Amounts, NOTHING, type Rate } from "./amounts.ts";
import type { Moment } from "./moment.ts";
import { type OpenRow, type UsageRow, usage, usageOpen } from "./table.ts";

/** Columns that usage can be grouped by. */
export const DIMENSIONS = { room: usage.room_uid, agent: usage.agent_id, key: usage.key_id, day: usage.day } as const;
export type Dimension = keyof typeof DIMENSIONS;

const placeholders = (columns: object) =>
  Object.fromEntries(Object.keys(columns).map((name) => [name, sql.placeholder(name)]));

function prepare(queries: Queries) {
  const ofDay = "org_id = ? AND day = ?";
  const open = "FROM usage_open WHERE org_id = ?";
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
    count: rawQuery<{ count: number }>(queries, `SELECT count(*) AS count FROM usage WHERE ${ofDay}`),
    ofRoom: rawQuery<Amounts>(
      queries,
      `SELECT ${AMOUNTS.map((name) => `coalesce(sum(usage.${name}), 0) AS ${name}`).join(", ")}
       FROM json_each(?) AS days CROSS JOIN usage
       WHERE usage.org_id = ? AND usage.day = days.value AND usage.room_uid = ?`,
    ),
    openRows: rawQuery<OpenRow>(queries, `SELECT * ${open}`),
    openInRoom: rawQuery<OpenRow>(queries, `SELECT * ${open} AND room_uid = ?`),
    openSandboxes: rawQuery<OpenRow>(queries, `SELECT * ${open} AND drive_bytes = 0`),
    openDrives: rawQuery<Rate & Moment>(
      queries,
      `SELECT 0 AS vcpu_count, 0 AS memory_mib, sum(drive_bytes) AS drive_bytes, boot_id, uptime_ms, wall_ms ${open}
         AND drive_bytes > 0 GROUP BY boot_id, uptime_ms, wall_ms`,
    ),
    has: rawQuery(queries, `SELECT 1 FROM usage WHERE ${ofDay} AND room_uid = ? AND agent_id = ? AND key_id = ?`),
  };
}

const statementsOf = preparedBy(prepare);

export function addUsage(queries: Queries, row: UsageRow): void {
  statementsOf(queries).add.run({ ...row });
}

/** Number of rows of an organization's day. */
export function countRows(queries: Queries, orgId: OrgId, day: string): number {
  return statementsOf(queries).count([orgId, day])[0]?.count ?? 0;
}

/** Whether the row exists, so that usage would be added to it. */
export function hasRow(queries: Queries, { org_id, day, room_uid, agent_id, key_id }: UsageRow): boolean {
  return statementsOf(queries).has([org_id, day, room_uid, agent_id, key_id]).length > 0;
}

/** Opens it, or replaces the open row of the same subject. */
export function putOpen(queries: Queries, row: OpenRow): void {
  statementsOf(queries).open.run({ ...row });
}

export function getOpen(queries: Queries, subject: string): OpenRow | undefined {
  return queries.select().from(usageOpen).where(eq(usageOpen.subject, subject)).get();
}

export function removeOpen(queries: Queries, subject: string): void {
  queries.delete(usageOpen).where(eq(usageOpen.subject, subject)).run();
}

/** Open rows of an organization. */
export function listOpen(queries: Queries, orgId: OrgId): OpenRow[] {
  return statementsOf(queries).openRows([orgId]);
}

/** Those of one of its rooms. */
export function openInRoom(queries: Queries, orgId: OrgId, roomUid: RoomUid): OpenRow[] {
  return statementsOf(queries).openInRoom([orgId, roomUid]);
}

/** Those of its sandboxes. */
export function openSandboxes(queries: Queries, orgId: OrgId): OpenRow[] {
  return statementsOf(queries).openSandboxes([orgId]);
}

/** Bytes of its drives that were counted up to the same moment: there may be thousands of drives, which are counted together. */
export function openDrives(queries: Queries, orgId: OrgId): (Rate & Moment)[] {
  return statementsOf(queries).openDrives([orgId]);
}

/** The next open rows, by subject. */
export function openAfter(queries: Queries, after: string, most: number): OpenRow[] {
  return queries
    .select()
    .from(usageOpen)
    .where(gt(usageOpen.subject, after))
    .orderBy(usageOpen.subject)
    .limit(most)
    .all();
}

/** The first of these days (both included) with usage of an organization, or the first after `after`; null if absent. */
export function nextDay(
  queries: Queries,
  orgId: OrgId,
  days: { from: string; to: string },
  after?: string,
): string | null {
  const isLater = after === undefined ? gte(usage.day, days.from) : gt(usage.day, after);
  const condition = and(eq(usage.org_id, orgId), isLater, lte(usage.day, days.to));
  return queries.select({ day: usage.day }).from(usage).where(condition).orderBy(usage.day).limit(1).get()?.day ?? null;
}

/** The written usage of an organization's day, for each value of a dimension. */
export function sumUsage(queries: Queries, orgId: OrgId, day: string, by: Dimension): (Amounts & { group: string })[] {
  const sums = Object.fromEntries(AMOUNTS.map((name) => [name, sum(usage[name]).mapWith(Number)]));
  return queries
    .select({ group: DIMENSIONS[by], ...(sums as Record<keyof Amounts, SQL<number>>) })
    .from(usage)
    .where(and(eq(usage.org_id, orgId), eq(usage.day, day)))
    .groupBy(DIMENSIONS[by])
    .all();
}

/** Written usage of a room's days. `days` is a JSON array: each day is one look-up in the table's key. */
export function sumRoom(queries: Queries, orgId: OrgId, days: string, roomUid: RoomUid): Amounts {
  return statementsOf(queries).ofRoom([days, orgId, roomUid])[0] ?? { ...NOTHING };
}

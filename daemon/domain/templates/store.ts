/** SQL of the builds that organizations requested. */
import { and, asc, desc, eq, gt, inArray, isNotNull, isNull } from "drizzle-orm";
import type { BuildId, OrgId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { type BuildEventRow, type BuildRow, templateBuildEvents, templateBuilds } from "./table.ts";

export function insertBuild(queries: Queries, row: BuildRow): void {
  queries.insert(templateBuilds).values(row).run();
}

export function getBuild(queries: Queries, orgId: OrgId, buildId: BuildId): BuildRow | undefined {
  const condition = and(eq(templateBuilds.build_id, buildId), eq(templateBuilds.org_id, orgId));
  return queries.select().from(templateBuilds).where(condition).get();
}

/** Unfinished builds of an organization, or of all. */
export function unfinishedBuilds(queries: Queries, orgId?: OrgId): BuildRow[] {
  const open = isNull(templateBuilds.finished_at);
  const mine = orgId === undefined ? open : and(eq(templateBuilds.org_id, orgId), open);
  return queries.select().from(templateBuilds).where(mine).orderBy(asc(templateBuilds.build_id)).all();
}

export function updateBuild(queries: Queries, buildId: BuildId, change: Partial<BuildRow>): void {
  queries.update(templateBuilds).set(change).where(eq(templateBuilds.build_id, buildId)).run();
}

export function insertBuildEvent(queries: Queries, row: BuildEventRow): void {
  queries.insert(templateBuildEvents).values(row).run();
  updateBuild(queries, row.build_id, { last_seq: row.seq });
}

export function buildEventsAfter(queries: Queries, buildId: BuildId, after: number, most: number): BuildEventRow[] {
  const { build_id, seq } = templateBuildEvents;
  const condition = and(eq(build_id, buildId), gt(seq, after));
  return queries.select().from(templateBuildEvents).where(condition).orderBy(asc(seq)).limit(most).all();
}

/** Deletes all ended builds but the newest `kept`. */
export function forgetOldBuilds(queries: Queries, orgId: OrgId, kept: number): void {
  const { build_id, org_id, finished_at } = templateBuilds;
  const ended = and(eq(org_id, orgId), isNotNull(finished_at));
  const rows = queries.select({ build_id }).from(templateBuilds).where(ended).orderBy(desc(build_id)).all();
  forget(
    queries,
    rows.slice(kept).map((row) => row.build_id),
  );
}

export function forgetBuildsOf(queries: Queries, orgId: OrgId): void {
  const { build_id, org_id } = templateBuilds;
  const rows = queries.select({ build_id }).from(templateBuilds).where(eq(org_id, orgId)).all();
  forget(
    queries,
    rows.map((row) => row.build_id),
  );
}

function forget(queries: Queries, buildIds: BuildId[]): void {
  if (buildIds.length === 0) return;
  queries.delete(templateBuildEvents).where(inArray(templateBuildEvents.build_id, buildIds)).run();
  queries.delete(templateBuilds).where(inArray(templateBuilds.build_id, buildIds)).run();
}

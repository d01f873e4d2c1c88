/** SQL queries of snapshots. */
import { and, asc, count, eq, gt, isNotNull, sql } from "drizzle-orm";
import type { CheckpointId, OrgId, RoomUid } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { type SnapshotRow, snapshots } from "./table.ts";

export function insertSnapshot(queries: Queries, row: SnapshotRow): void {
  queries.insert(snapshots).values(row).run();
}

export function findSnapshot(queries: Queries, roomUid: RoomUid, snapshotId: string): SnapshotRow | undefined {
  const isIt = and(
    eq(snapshots.snapshot_id, snapshotId as SnapshotRow["snapshot_id"]),
    eq(snapshots.room_uid, roomUid),
  );
  return queries.select().from(snapshots).where(isIt).get();
}

/** Of any room: a forked room starts with the snapshots of its source. */
export function getSnapshot(queries: Queries, snapshotId: SnapshotRow["snapshot_id"]): SnapshotRow | undefined {
  return queries.select().from(snapshots).where(eq(snapshots.snapshot_id, snapshotId)).get();
}

/** All of a checkpoint. */
export function snapshotsOf(queries: Queries, checkpointId: CheckpointId): SnapshotRow[] {
  return queries.select().from(snapshots).where(eq(snapshots.checkpoint_id, checkpointId)).all();
}

/** All of a room. */
export function roomSnapshots(queries: Queries, roomUid: RoomUid): SnapshotRow[] {
  return queries.select().from(snapshots).where(eq(snapshots.room_uid, roomUid)).all();
}

/** An organization's. */
export function locateSnapshot(queries: Queries, orgId: OrgId, snapshotId: string) {
  const { snapshot_id, org_id, room_uid, agent_id } = snapshots;
  const isIt = and(eq(snapshot_id, snapshotId as SnapshotRow["snapshot_id"]), eq(org_id, orgId));
  return queries.select({ room_uid, agent_id }).from(snapshots).where(isIt).get();
}

export function listSnapshots(
  queries: Queries,
  {
    room_uid,
    agent_id,
    after,
    limit,
  }: { room_uid: RoomUid; agent_id: string | null; after: string | null; limit: number },
): SnapshotRow[] {
  return queries
    .select()
    .from(snapshots)
    .where(
      and(
        eq(snapshots.room_uid, room_uid),
        agent_id === null ? undefined : eq(snapshots.agent_id, agent_id),
        after === null ? undefined : gt(snapshots.snapshot_id, after as SnapshotRow["snapshot_id"]),
      ),
    )
    .orderBy(asc(snapshots.snapshot_id))
    .limit(limit)
    .all();
}

export function deleteSnapshot(queries: Queries, snapshotId: SnapshotRow["snapshot_id"]): void {
  queries.delete(snapshots).where(eq(snapshots.snapshot_id, snapshotId)).run();
}

/** Deletes all snapshots of a room; within a transaction. */
export function deleteSnapshotsOf(queries: Queries, roomUid: RoomUid): void {
  queries.delete(snapshots).where(eq(snapshots.room_uid, roomUid)).run();
}

export function countSnapshots(queries: Queries, roomUid: RoomUid): number {
  return queries.select({ held: count() }).from(snapshots).where(eq(snapshots.room_uid, roomUid)).get()?.held ?? 0;
}

/** Disk space of an organization's snapshots, in bytes. */
export function snapshotBytes(queries: Queries, orgId: OrgId): number {
  const bytes = sql<number>`coalesce(sum(${snapshots.size_bytes}), 0)`;
  return queries.select({ bytes }).from(snapshots).where(eq(snapshots.org_id, orgId)).get()?.bytes ?? 0;
}

/** Snapshots with an expiry. */
export function expiringSnapshots(queries: Queries): SnapshotRow[] {
  return queries.select().from(snapshots).where(isNotNull(snapshots.expires_at)).all();
}

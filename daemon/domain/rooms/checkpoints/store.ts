/** SQL of checkpoints. */
import { and, asc, count, eq, gt, isNotNull, sql } from "drizzle-orm";
import type { CheckpointId, OrgId, RoomUid } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { type CheckpointRow, checkpoints } from "./table.ts";

export function insertCheckpoint(queries: Queries, row: CheckpointRow): void {
  queries.insert(checkpoints).values(row).run();
}

export function findCheckpoint(queries: Queries, roomUid: RoomUid, checkpointId: string): CheckpointRow | undefined {
  const isIt = and(eq(checkpoints.checkpoint_id, checkpointId as CheckpointId), eq(checkpoints.room_uid, roomUid));
  return queries.select().from(checkpoints).where(isIt).get();
}

/** An organization's. */
export function getCheckpoint(queries: Queries, orgId: OrgId, checkpointId: string): CheckpointRow | undefined {
  const isIt = and(eq(checkpoints.checkpoint_id, checkpointId as CheckpointId), eq(checkpoints.org_id, orgId));
  return queries.select().from(checkpoints).where(isIt).get();
}

export function listCheckpoints(
  queries: Queries,
  { room_uid, after, limit }: { room_uid: RoomUid; after: string | null; limit: number },
): CheckpointRow[] {
  const isOf = eq(checkpoints.room_uid, room_uid);
  return queries
    .select()
    .from(checkpoints)
    .where(and(isOf, after === null ? undefined : gt(checkpoints.checkpoint_id, after as CheckpointId)))
    .orderBy(asc(checkpoints.checkpoint_id))
    .limit(limit)
    .all();
}

export function countCheckpoints(queries: Queries, roomUid: RoomUid): number {
  return queries.select({ held: count() }).from(checkpoints).where(eq(checkpoints.room_uid, roomUid)).get()?.held ?? 0;
}

export function deleteCheckpoint(queries: Queries, checkpointId: CheckpointId): void {
  queries.delete(checkpoints).where(eq(checkpoints.checkpoint_id, checkpointId)).run();
}

/** Deletes all checkpoints of a room; within a transaction. */
export function deleteCheckpointsOf(queries: Queries, roomUid: RoomUid): void {
  queries.delete(checkpoints).where(eq(checkpoints.room_uid, roomUid)).run();
}

/** Disk space of an organization's checkpoints without their snapshots, in bytes. */
export function checkpointBytes(queries: Queries, orgId: OrgId): number {
  const bytes = sql<number>`coalesce(sum(${checkpoints.drive_bytes} + ${checkpoints.state_bytes}), 0)`;
  return queries.select({ bytes }).from(checkpoints).where(eq(checkpoints.org_id, orgId)).get()?.bytes ?? 0;
}

/** Checkpoints that expire. */
export function expiringCheckpoints(queries: Queries): CheckpointRow[] {
  return queries.select().from(checkpoints).where(isNotNull(checkpoints.expires_at)).all();
}

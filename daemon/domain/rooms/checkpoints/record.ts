/** A checkpoint's row as the API's record. */
import type { CheckpointRecord } from "../../../../shared/api/checkpoints.ts";
import type { CheckpointRow } from "./table.ts";

/** `snapshotBytes` is the disk space of its snapshots. */
export function toCheckpointRecord(row: CheckpointRow, room_id: string, snapshotBytes: number): CheckpointRecord {
  const { checkpoint_id, name, drive_bytes, state_bytes, paused_ms, created_at, expires_at } = row;
  return {
    checkpoint_id,
    room_id,
    name,
    snapshots: row.sandboxes.map(({ agent_id, snapshot_id }) => ({ agent_id, snapshot_id })),
    drive_bytes,
    size_bytes: drive_bytes + state_bytes + snapshotBytes,
    paused_ms,
    created_at,
    expires_at,
  };
}

/** API record of a snapshot's row. The settings of its sandbox are never shown. */
import type { SnapshotRecord } from "../../../../shared/api/snapshots.ts";
import type { SnapshotRow } from "./table.ts";

export function toSnapshotRecord(
  {
    room_uid: _room,
    org_id: _org,
    settings: _settings,
    disk_mib: _disk,
    template_digest: _digest,
    ...row
  }: SnapshotRow,
  room_id: string,
): SnapshotRecord {
  const { created_by_type: _type, created_by_id: _id, ...shown } = row;
  return { ...shown, room_id };
}

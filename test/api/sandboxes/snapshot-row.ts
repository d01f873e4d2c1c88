/** A snapshot's row, of a sandbox that need not have run. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { newId, type SnapshotId } from "../../../shared/ids.ts";
import type { TestDaemon } from "../../harness/daemon.ts";

/** Written without the daemon, which sees it on its next read. */
export function insertSnapshotRow(daemon: TestDaemon, sandboxId: string): SnapshotId {
  const snapshotId = newId("snap");
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("PRAGMA busy_timeout = 5000");
  rows.run(
    `INSERT INTO snapshots (snapshot_id, room_uid, org_id, agent_id, sandbox_id, mode, memory_mib, vcpu_count, disk_mib,
       template_id, settings, size_bytes, paused_ms, digest, created_at, created_by_type, created_by_id)
     SELECT ?, room_uid, org_id, agent_id, sandbox_id, 'full', memory_mib, vcpu_count, disk_mib, template_id,
       '{"env":{},"egress_mode":"none","egress_allowlist":[],"guest_net":true,"fabric_attached":true}', 1, 1, '',
       created_at, created_by_type, created_by_id
     FROM sandboxes WHERE sandbox_id = ?`,
    [snapshotId, sandboxId],
  );
  rows.close();
  return snapshotId;
}

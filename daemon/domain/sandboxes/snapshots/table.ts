/** Columns of snapshots. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SnapshotMode } from "../../../../shared/api/snapshots.ts";
import type { CheckpointId, OrgId, RoomUid, SandboxId, SnapshotId } from "../../../../shared/ids.ts";
import type { SandboxRow } from "../table.ts";

/** Defaults for a sandbox that is created from the snapshot. */
export type SnapshotSettings = Pick<
  SandboxRow,
  "env" | "egress_mode" | "egress_allowlist" | "guest_net" | "fabric_attached"
>;

export const snapshots = sqliteTable("snapshots", {
  snapshot_id: text().$type<SnapshotId>().primaryKey(),
  room_uid: text().$type<RoomUid>().notNull(),
  org_id: text().$type<OrgId>().notNull(),
  agent_id: text().notNull(),
  sandbox_id: text().$type<SandboxId>().notNull(),
  name: text(),
  parent: text().$type<SnapshotId>(),
  mode: text().$type<SnapshotMode>().notNull(),
  memory_mib: integer().notNull(),
  vcpu_count: integer().notNull(),
  disk_mib: integer().notNull(),
  template_id: text().notNull(),
  template_digest: text(),
  settings: text({ mode: "json" }).$type<SnapshotSettings>().notNull(),
  size_bytes: integer().notNull(),
  paused_ms: integer().notNull(),
  digest: text().notNull(),
  created_at: text().notNull(),
  expires_at: text(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
  checkpoint_id: text().$type<CheckpointId>(),
});

export type SnapshotRow = typeof snapshots.$inferSelect;

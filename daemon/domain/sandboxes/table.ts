/** Drizzle schema of the sandboxes table. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { ExitCause, OnIdle, SandboxState, StartMode, WakeReason } from "../../../shared/api/sandboxes.ts";
import type { OrgId, RoomUid, SandboxId, SnapshotId } from "../../../shared/ids.ts";

export const sandboxes = sqliteTable("sandboxes", {
  sandbox_id: text().$type<SandboxId>().primaryKey(),
  room_uid: text().$type<RoomUid>().notNull(),
  org_id: text().$type<OrgId>().notNull(),
  agent_id: text().notNull(),
  guest_cid: integer().notNull(),
  cid_held: integer({ mode: "boolean" }).notNull(),
  template_id: text().notNull(),
  template_digest: text(),
  vcpu_count: integer().notNull(),
  memory_mib: integer().notNull(),
  /** Maximum size of its own disk. */
  disk_mib: integer().notNull(),
  state: text().$type<SandboxState>().notNull(),
  status_reason: text().notNull(),
  status_message: text().notNull(),
  last_transition_at: text().notNull(),
  exit_cause: text().$type<ExitCause>(),
  exit_at: text(),
  env: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
  egress_mode: text().$type<"none" | "allowlist" | "public">().notNull(),
  egress_allowlist: text({ mode: "json" }).$type<string[]>().notNull(),
  egress_revision: integer().notNull(),
  guest_net: integer({ mode: "boolean" }).notNull(),
  fabric_attached: integer({ mode: "boolean" }).notNull(),
  labels: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
  idle_timeout_seconds: integer(),
  on_idle: text().$type<OnIdle>().notNull(),
  wake_on: text({ mode: "json" }).$type<WakeReason[]>().notNull(),
  max_duration_seconds: integer(),
  created_at: text().notNull(),
  started_at: text(),
  ready_at: text(),
  stopped_at: text(),
  expires_at: text(),
  create_wall_ms: integer(),
  boot: text({ mode: "json" }).$type<Record<string, number>>().notNull(),
  start_mode: text().$type<StartMode>(),
  drive_fault: text(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
  /** The sandbox's source snapshot, or the last one taken of it. */
  snapshot_id: text().$type<SnapshotId>(),
});

/** Whether a sandbox is being adopted: `late` if it takes longer than others wait for it. */
export const UNDER_WAY = { no: 0, now: 1, late: 2 } as const;

/** Sandboxes that are being adopted, or were when the daemon crashed (quarantine.ts). */
export const adoptions = sqliteTable("adoptions", {
  sandbox_id: text().$type<SandboxId>().primaryKey(),
  crashes: integer().notNull(),
  under_way: integer().$type<(typeof UNDER_WAY)[keyof typeof UNDER_WAY]>().notNull(),
});

export type SandboxRow = typeof sandboxes.$inferSelect;

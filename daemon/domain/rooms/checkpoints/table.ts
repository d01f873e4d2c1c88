/** Columns of checkpoints. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { CheckpointId, OrgId, RoomUid } from "../../../../shared/ids.ts";
import type { CutSandbox } from "../../sandboxes/index.ts";

export const checkpoints = sqliteTable("checkpoints", {
  checkpoint_id: text().$type<CheckpointId>().primaryKey(),
  room_uid: text().$type<RoomUid>().notNull(),
  org_id: text().$type<OrgId>().notNull(),
  name: text(),
  sandboxes: text({ mode: "json" }).$type<readonly CutSandbox[]>().notNull(),
  drive_bytes: integer().notNull(),
  state_bytes: integer().notNull(),
  paused_ms: integer().notNull(),
  cut_at: text().notNull(),
  created_at: text().notNull(),
  expires_at: text(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
});

export type CheckpointRow = typeof checkpoints.$inferSelect;

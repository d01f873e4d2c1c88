/** The table of rooms, as queries see it. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { RoomState } from "../../../shared/api/rooms.ts";
import type { CheckpointId, KeyId, OrgId, RoomUid, SandboxId } from "../../../shared/ids.ts";

/**
 * Unfinished work on a room as a whole; a daemon that finds it at its start resumes it.
 *
 *     restore   it is being restored to a checkpoint; until that is done it accepts no changes
 *     start     everything of a checkpoint is in place, and its sandboxes are being started
 *     move      it is moving to another host; until its owner is known no caller reaches it
 */
export type Branching = BranchingOfCheckpoint | Moving;

export interface Moving {
  kind: "move";
  to: string;
  /** The room's epoch at the start of the move. */
  epoch: number;
  key_id: KeyId;
  /** The claim was requested, so the other host may have it: if no host has it, it has ended there. */
  claiming?: true;
  /** When it was requested. */
  claimed_at?: string;
}

export interface BranchingOfCheckpoint {
  kind: "restore" | "start";
  checkpoint_id: CheckpointId;
  /** The key of the call that requested it. */
  key_id: KeyId;
  /** For `start`: the new ids of the checkpoint's sandboxes. */
  as?: Readonly<Record<string, SandboxId>>;
}

export const rooms = sqliteTable("rooms", {
  room_uid: text().$type<RoomUid>().primaryKey(),
  room_id: text().notNull(),
  org_id: text().$type<OrgId>().notNull(),
  host_id: text().notNull(),
  state: text().$type<RoomState>().notNull(),
  status_reason: text().notNull(),
  status_message: text().notNull(),
  last_transition_at: text().notNull(),
  labels: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
  drive_limit_bytes: integer().notNull(),
  drive_until_at: text(),
  created_at: text().notNull(),
  updated_at: text().notNull(),
  expires_at: text(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
  keep_drive: integer({ mode: "boolean" }).notNull(),
  former_ids: text({ mode: "json" }).$type<readonly string[]>().notNull().default([]),
  branching: text({ mode: "json" }).$type<Branching>(),
  /** Epoch in which this host owns the room, or owned it last; incremented on every change of hosts. */
  epoch: integer().notNull().default(1),
});

export type RoomRow = typeof rooms.$inferSelect;
/** Row of a room that was not made from another, and that has no unfinished work. */
export type NewRoomRow = Omit<RoomRow, "former_ids" | "branching" | "epoch"> &
  Partial<Pick<RoomRow, "former_ids" | "branching" | "epoch">>;

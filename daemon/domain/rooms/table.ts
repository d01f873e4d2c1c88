/** Owns the table of rooms as the queries see it. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { RoomState } from "../../../shared/api/rooms.ts";
import type { CheckpointId, KeyId, OrgId, RoomUid, SandboxId } from "../../../shared/ids.ts";

/**
 * What is just being made of a room: a daemon that finds it goes on with it.
 *
 *   restore   it is turned back to a checkpoint; until that is done it takes no changes
 *   start     of a checkpoint all is in its place, and its sandboxes are made to run
 *   move      it goes to another host; until it is known whose it is nobody gets to it
 */
export type Branching = BranchingOfCheckpoint | Moving;

export interface Moving {
  kind: "move";
  to: string;
  /** Of its ownership as it began. */
  epoch: number;
  key_id: KeyId;
  /** The other host may have it: where nobody has, it has ended there. */
  claiming?: true;
}

export interface BranchingOfCheckpoint {
  kind: "restore" | "start";
  checkpoint_id: CheckpointId;
  /** Whose key asked for it. */
  key_id: KeyId;
  /** To start: the ids by which it knows the checkpoint's sandboxes. */
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
  /** In which this host has it, or had it last: it is counted up whenever a room changes hosts. */
  epoch: integer().notNull().default(1),
});

export type RoomRow = typeof rooms.$inferSelect;
/** Of one that is none of another room's, and of which nothing is being made. */
export type NewRoomRow = Omit<RoomRow, "former_ids" | "branching" | "epoch"> &
  Partial<Pick<RoomRow, "former_ids" | "branching" | "epoch">>;

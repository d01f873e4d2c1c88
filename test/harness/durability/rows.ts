/** A reader of a daemon's database, for tests: stored state, whether or not the API shows it. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { TestDaemon } from "../daemon.ts";

export interface SandboxFacts {
  sandbox_id: string;
  room_uid: string;
  agent_id: string;
  guest_cid: number;
  cid_held: number;
  state: string;
}

export interface RoomFacts {
  room_uid: string;
  room_id: string;
  state: string;
  drive_until_at: string | null;
}

export interface Rows {
  /** All that are not destroyed. */
  sandboxes: SandboxFacts[];
  /** All rooms that ever were. */
  rooms: RoomFacts[];
  /** CIDs that are held, of destroyed ones too. */
  held_cids: number[];
  /** Sandboxes with time that is currently metered. */
  metered: string[];
  snapshots: string[];
  /** Keys of messages, deliveries, barriers or agents that no room has. */
  strays: string[];
  /** Events of audit records that have their room's uid without its name. */
  nameless: string[];
}

export function rowsOf(daemon: TestDaemon): Rows {
  const database = new Database(join(daemon.dataDir, "roomd.db"), { readonly: true });
  try {
    database.run("PRAGMA busy_timeout = 5000");
    const all = <T>(sql: string) => database.query(sql).all() as T[];
    return {
      sandboxes: all(
        "SELECT sandbox_id, room_uid, agent_id, guest_cid, cid_held, state FROM sandboxes WHERE state <> 'destroyed'",
      ),
      rooms: all("SELECT room_uid, room_id, state, drive_until_at FROM rooms"),
      held_cids: all<{ guest_cid: number }>("SELECT guest_cid FROM sandboxes WHERE cid_held = 1").map(
        (row) => row.guest_cid,
      ),
      metered: all<{ subject: string }>("SELECT subject FROM usage_open WHERE drive_bytes = 0").map(
        (row) => row.subject,
      ),
      snapshots: all<{ snapshot_id: string }>("SELECT snapshot_id FROM snapshots").map((row) => row.snapshot_id),
      strays: all<{ room_uid: string }>(
        ["messages", "deliveries", "barriers", "agents"]
          .map(
            (table) =>
              `SELECT room_uid FROM ${table} WHERE room_uid NOT IN (
                 SELECT ifnull(rows_key, room_uid) FROM rooms LEFT JOIN room_rows USING (room_uid))`,
          )
          .join(" UNION "),
      ).map((row) => row.room_uid),
      nameless: all<{ event: string }>(
        "SELECT DISTINCT event FROM audit WHERE room_uid IS NOT NULL AND room_id IS NULL",
      ).map((row) => row.event),
    };
  } finally {
    database.close();
  }
}

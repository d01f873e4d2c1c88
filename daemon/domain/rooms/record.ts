/** A room in the format of the API: its row, with its number of sandboxes and its drive's use. */
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import { type MaybePromise, whenResolved } from "../../core/concurrency/maybe-promise.ts";
import type { RoomDeps } from "./deps.ts";
import type { RoomRow } from "./table.ts";
import { toTarget } from "./target.ts";

/** Share of its limit from which a drive causes a warning. */
const DRIVE_WARNING_SHARE = 0.9;

const WARNINGS = {
  open: [],
  stopped: [
    "The drive is over its quota, or the organization's drives are over its plan. Sandboxes can read and delete files, but not write.",
  ],
  held: [
    "The drive kept growing beyond its quota. In sandboxes every access to it blocks until drive calls have deleted enough.",
  ],
} as const;

const NOTHING = { used_bytes: 0, file_count: 0 };

export interface RoomRecords {
  of(row: RoomRow): MaybePromise<RoomRecord>;
}

export function makeRoomRecords(deps: RoomDeps): RoomRecords {
  const recordOf = (row: RoomRow, { used_bytes, file_count }: typeof NOTHING): RoomRecord => {
    const mode = row.state === "destroyed" ? "open" : deps.drive.modeOf(row.room_uid);
    const full = used_bytes >= row.drive_limit_bytes * DRIVE_WARNING_SHARE;
    return {
      room_id: row.room_id,
      room_uid: row.room_uid,
      org_id: row.org_id,
      host: row.host_id,
      state: row.state,
      status: {
        reason: row.status_reason,
        message: row.status_message,
        last_transition_at: row.last_transition_at,
      },
      labels: row.labels,
      sandbox_count: deps.sandboxes.countLive(row.room_uid),
      drive: { used_bytes, limit_bytes: row.drive_limit_bytes, file_count },
      created_at: row.created_at,
      updated_at: row.updated_at,
      expires_at: row.expires_at,
      created_by: { type: row.created_by_type, id: row.created_by_id },
      warnings: [...(mode === "open" && full ? ["The drive is nearly full."] : []), ...WARNINGS[mode]],
    };
  };
  return {
    of: (row) => {
      const used = row.state === "destroyed" ? NOTHING : deps.drive.measure(toTarget(row, deps.paths));
      return whenResolved(used, (measured) => recordOf(row, measured));
    },
  };
}

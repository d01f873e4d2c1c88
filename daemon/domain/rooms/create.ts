/** Creates a room: its directory, then its row. */
import { chmod, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { type RoomRecord, roomCreate } from "../../../shared/api/rooms.ts";
import { newId } from "../../../shared/ids.ts";
import { type Bound, bind, type KeyCall } from "../../core/call/operation.ts";
import { after, now } from "../../core/clock.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { errnoOf, ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { twice } from "../../db/dry-run.ts";
import { violatesUnique } from "../../db/transact.ts";
import { syncDirectory } from "../../host/files/async-calls.ts";
import { markDrive } from "../../host/isolation/directories.ts";
import type { RoomDeps } from "./deps.ts";
import { removeUnborn } from "./erase.ts";
import type { RoomRecords } from "./record.ts";
import { insertRoom } from "./store.ts";
import type { RoomRow } from "./table.ts";
import { mayEnter } from "./target.ts";

export function makeCreate(
  deps: RoomDeps,
  records: RoomRecords,
  lookup: (orgId: RoomRow["org_id"], roomId: string) => RoomRow | undefined,
  schedule: (row: RoomRow) => void,
): Bound {
  return bind(roomCreate, {
    run: async (call, input) => {
      requireEnter(call, input.room_id);
      if (lookup(call.caller.org_id, input.room_id)) throw inUse(input.room_id);
      const made = newRoom(deps, call, input.room_id, input.labels ?? {});
      const { ttl_seconds } = input;
      const row = { ...made, expires_at: ttl_seconds === undefined ? null : after(made.created_at, ttl_seconds) };
      call.audit.room_id = row.room_id;
      call.audit.room_uid = row.room_uid;
      await makeDirectories(deps, row);
      await faultPoint("room.made");
      let body: RoomRecord;
      try {
        const record = await records.of(row);
        body = await placing(deps, row, (queries) => {
          insertRoom(queries, row);
          const warnings = deps.quota.admit(queries, call, { rooms: 1 });
          const made = { ...record, warnings: [...warnings, ...record.warnings] };
          call.work.keep("created", made);
          return made;
        });
      } catch (error) {
        await removeUnborn(deps, row.room_uid);
        throw violatesUnique(error, "rooms.room_id") ? inUse(input.room_id) : error;
      }
      schedule(row);
      return { outcome: "created", body };
    },
  });
}

/** Places a room on this host in the commit that writes its row by `write`; it counts for its organization on all hosts. */
export function placing<T>({ directory }: RoomDeps, row: RoomRow, write: (queries: Queries) => T): Promise<T> {
  return directory.database.commit((queries) => {
    directory.place(queries, row);
    return twice(queries, write);
  });
}

/** Throws insufficient_scope for a key that is bound to other rooms. */
export function requireEnter({ caller }: KeyCall, roomId: string): void {
  if (mayEnter(caller, roomId)) return;
  throw new ServiceError("insufficient_scope", { detail: "The key is bound to other rooms." });
}

/** The row of a room without an expiry: it ends only on request. */
export function newRoom(deps: RoomDeps, { caller }: KeyCall, room_id: string, labels: RoomRow["labels"]): RoomRow {
  const created_at = now();
  return {
    room_uid: newId("rom"),
    room_id,
    org_id: caller.org_id,
    host_id: deps.hostId,
    epoch: 1,
    state: "active",
    status_reason: "created",
    status_message: "The room is active.",
    last_transition_at: created_at,
    labels,
    drive_limit_bytes: deps.driveLimitBytes,
    drive_until_at: null,
    keep_drive: true,
    created_at,
    updated_at: created_at,
    expires_at: null,
    created_by_type: "key",
    created_by_id: caller.key_id,
    former_ids: [],
    branching: null,
  };
}

export async function makeDirectories(deps: RoomDeps, row: RoomRow): Promise<void> {
  const drive = deps.paths.drive(row.room_uid);
  try {
    await mkdir(drive, { recursive: true, mode: 0o700 });
    // In guests, every user may write to the drive, as to /tmp, but not delete the files of others.
    await chmod(drive, 0o1777);
    await markDrive(drive, deps.driveRoot(row.room_uid));
    deps.driveQuota.begin(drive, row.room_uid, { bytes: row.drive_limit_bytes, inodes: deps.driveLimitEntries });
    // After a host crash, a row on disk must have its directories.
    for (const made of [drive, dirname(drive), deps.paths.rooms]) await syncDirectory(made);
  } catch (error) {
    throw errnoOf(error) === "ENOSPC" ? new ServiceError("disk_full", { cause: error }) : error;
  }
}

export function inUse(roomId: string): ServiceError {
  return new ServiceError("room_id_in_use", {
    detail: `There is an active room ${roomId}.`,
    hint: "Use it, destroy it first, or choose another room_id.",
  });
}

/** Backups of rooms by clients: downloading a room as a file, and making a room from one. */
import { ROOM_FILE_TYPE, roomBackup, roomFromBackup } from "../../../../shared/api/room-backups.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { monotonicMs } from "../../../core/clock.ts";
import { within } from "../../../core/concurrency/published.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { requireWholeRoom } from "../checkpoints/fork.ts";
import type { Locks } from "../checkpoints/locks.ts";
import { inUse, requireEnter } from "../create.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import type { RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import { RoomFiles } from "./files.ts";
import { restoreRoom } from "./restore.ts";
import { packRoom, streamOf } from "./take.ts";

interface BackupParts {
  deps: RoomDeps;
  records: RoomRecords;
  locks: Pick<Locks, "take">;
  findRow(call: KeyCall, roomId: string): RoomRow;
  lookup(orgId: RoomRow["org_id"], roomId: string): RoomRow | undefined;
  schedule(row: RoomRow): void;
}

export interface RoomBackups {
  operations: Bound[];
  /** Erases leftover backup files of a killed daemon. */
  sweep(): Promise<void>;
}

export function makeRoomBackups({ deps, records, locks, findRow, lookup, schedule }: BackupParts): RoomBackups {
  const files = new RoomFiles(deps);
  const backup = bind(roomBackup, {
    find: (call, { room_id }) => findRow(call, String(room_id)),
    run: async (call, _input, row) => {
      call.audit.room_id = row.room_id;
      call.audit.room_uid = row.room_uid;
      requireWholeRoom(call);
      const room = toTarget(row, deps.paths);
      requireActive(room);
      const file = await files.begin(row.org_id);
      try {
        const about = await locks.take(row.room_uid, "backed up", (over) =>
          packRoom(deps, row, room, file, AbortSignal.any([over, call.signal])),
        );
        const { drive_bytes, left_out } = about;
        call.audit.details = { drive_bytes, left_out };
        return { outcome: "ok", stream: { type: ROOM_FILE_TYPE, bytes: streamOf(file, about) } };
      } catch (error) {
        await file.remove();
        throw error;
      }
    },
  });

  const fromBackup = bind(roomFromBackup, {
    run: async (call, { room_id }, _target, { body }) => {
      requireWholeRoom(call);
      requireEnter(call, room_id);
      call.audit.room_id = room_id;
      if (!body) throw new ServiceError("invalid_body", { detail: "The body must be a room file." });
      const source = body[Symbol.asyncIterator]();
      const made = await heard(source, async () => {
        if (lookup(call.caller.org_id, room_id)) throw inUse(room_id);
        const file = await files.begin(call.caller.org_id);
        try {
          const parts = { [Symbol.asyncIterator]: () => source };
          const brought = await restoreRoom({ deps, records }, call, room_id, parts, file);
          schedule(brought.row);
          return brought.body;
        } finally {
          await file.remove();
        }
      });
      return { outcome: "created", body: made };
    },
  });

  return { operations: [backup, fromBackup], sweep: () => files.sweep() };
}

/** For a client that is still sending when its file is refused. */
const HEARD_MS = 10_000;

/**
 * If a file is refused while the client is still sending, the client still receives the error: the rest of its body is read for a while,
 * and discarded.
 */
async function heard<T>(source: AsyncIterator<Uint8Array>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const since = monotonicMs();
    const left = () => HEARD_MS - (monotonicMs() - since);
    const rest = async () => {
      while (left() > 0) if ((await source.next()).done) return;
    };
    await within(rest(), HEARD_MS, "the rest of a room file").catch(() => {});
    throw error;
  }
}

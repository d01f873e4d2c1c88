/** Drives of ended rooms, which are kept for `drive.retention` and then erased. */
import { now } from "../../core/clock.ts";
import { Deadlines } from "../../core/concurrency/deadlines.ts";
import { describeError } from "../../core/service-error.ts";
import type { RoomDeps } from "./deps.ts";
import type { Eraser } from "./erase.ts";
import { drivesDue, nextDriveDue, updateRoom } from "./store.ts";
import type { RoomRow } from "./table.ts";

export interface KeptDrives {
  /** Erases the kept drive of a room, and records in its row that it is gone. */
  erase(row: RoomRow): Promise<void>;
  /** Erases every drive that is due, in the background; a drive that cannot be erased does not delay the others. */
  eraseDue(): void;
  stop(): void;
}

export function makeKeptDrives(
  { database, drive, log }: Pick<RoomDeps, "database" | "drive" | "log">,
  eraser: Eraser,
): KeptDrives {
  const deadlines = new Deadlines(() => kept.eraseDue());
  const kept: KeptDrives = {
    erase: async (row) => {
      await eraser.erase(row);
      await database.commit((queries) => updateRoom(queries, row.room_uid, { drive_until_at: null }));
      drive.forget(row.room_uid);
    },
    eraseDue: () => {
      const moment = now();
      for (const row of drivesDue(database.queries, moment)) {
        if (eraser.has(row.room_uid)) continue;
        kept
          .erase(row)
          .catch((error: unknown) =>
            log.error("failed to erase a drive", { room_uid: row.room_uid, error: describeError(error) }),
          );
      }
      deadlines.set("next", nextDriveDue(database.queries, moment));
    },
    stop: () => deadlines.clear(),
  };
  return kept;
}

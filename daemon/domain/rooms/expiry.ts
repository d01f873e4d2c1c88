/** Expiry of rooms at their `expires_at`, on the host that owns them. */
import type { RoomUid } from "../../../shared/ids.ts";
import { Deadlines } from "../../core/concurrency/deadlines.ts";
import type { RoomDeps } from "./deps.ts";
import { getRoom } from "./store.ts";
import type { RoomRow } from "./table.ts";

export interface RoomExpiry {
  /** Sets the room's deadline to its `expires_at`. */
  schedule(row: RoomRow): void;
  cancel(roomUid: RoomUid): void;
  stop(): void;
}

export function makeRoomExpiry(
  { database, ownership }: Pick<RoomDeps, "database" | "ownership">,
  end: (row: RoomRow) => void,
): RoomExpiry {
  const deadlines = new Deadlines((roomUid) => {
    const row = getRoom(database.queries, roomUid as RoomUid);
    // A room that is moving expires on the host that will own it.
    if (row?.state !== "active" || row.branching?.kind === "move") return;
    if (ownership.standing(row) === "here") end(row);
  });
  return {
    schedule: (row) => deadlines.set(row.room_uid, row.expires_at),
    cancel: (roomUid) => deadlines.set(roomUid, null),
    stop: () => deadlines.clear(),
  };
}

/** Injected dependencies of the moves of rooms: those of the rooms module, and its callbacks for the ends of a move. */
import type { RoomUid } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRow } from "../table.ts";

export interface MoveDeps extends RoomDeps {
  /** Removes all that a room has on the disk. */
  erase(row: RoomRow): Promise<void>;
  /** Within a transaction: removes the rows of the room's checkpoints. */
  forgetCheckpoints(queries: Queries, roomUid: RoomUid): void;
  /** Called when another host owns the room; this host retains its drive for a while. */
  onGone(row: RoomRow): void;
  /** Called when the move was cancelled, and the room stays here. */
  onStays(row: RoomRow): void;
}

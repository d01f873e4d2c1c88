/** What moving needs of the other verbs of rooms. */
import type { RoomUid } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRow } from "../table.ts";

export interface MoveDeps extends RoomDeps {
  /** Removes all that a room has on the disk. */
  erase(row: RoomRow): Promise<void>;
  /** Within a transaction: the room's checkpoints are none any more. */
  forgetCheckpoints(queries: Queries, roomUid: RoomUid): void;
  /** The room is another host's: its drive is kept here for a while. */
  onGone(row: RoomRow): void;
  /** The room was on its way, and is here all the same. */
  onStays(row: RoomRow): void;
}

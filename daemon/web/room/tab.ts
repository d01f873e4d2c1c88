/** Props of a room's pages. */
import type { RoomRecord } from "../../../shared/api/rooms.ts";

export interface TabProps {
  room: RoomRecord;
  /** Reloads the room. */
  again(): void;
}

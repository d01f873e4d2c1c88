/** Owns what a page of a room is given. */
import type { RoomRecord } from "../../../shared/api/rooms.ts";

export interface TabProps {
  room: RoomRecord;
  /** Asks for the room again. */
  again(): void;
}

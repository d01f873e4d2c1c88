/** Sort order of rooms in lists. Pure. */
import type { RoomGlance } from "../../../shared/api/overview/room-overview.ts";

/**
 * Rooms that need attention come first, then those with the most running sandboxes, then those with the most messages; the sort is stable:
 * otherwise the newest first.
 */
export function byUrgency(one: RoomGlance, other: RoomGlance): number {
  const others = urgencyOf(other);
  return urgencyOf(one).reduce((order, count, at) => order || (others[at] ?? 0) - count, 0);
}

const urgencyOf = ({ in_circle, blocked, running, messages_last_minute }: RoomGlance): number[] => [
  ...[Number(in_circle), blocked, running, messages_last_minute],
];

/** The order of rooms: rooms that need attention first, then active ones. */
import { expect, test } from "vitest";
import { byUrgency } from "../../../daemon/web/rooms/order.ts";
import type { RoomGlance } from "../../../shared/api/overview/room-overview.ts";

const room = (room_id: string, more: Partial<RoomGlance> = {}) =>
  ({ room_id, in_circle: false, blocked: 0, running: 0, messages_last_minute: 0, ...more }) as RoomGlance;

test("order: deadlocks, blocked agents, running sandboxes, messages; equals stay newest first", () => {
  const rooms = [
    room("newest"),
    room("older"),
    room("talks", { messages_last_minute: 7 }),
    room("runs", { running: 1 }),
    room("runs more", { running: 20_000 }),
    room("blocked", { blocked: 1 }),
    room("deadlock", { in_circle: true, blocked: 2 }),
  ];
  expect(rooms.sort(byUrgency).map(({ room_id }) => room_id)).toEqual([
    ...["deadlock", "blocked", "runs more", "runs", "talks", "newest", "older"],
  ]);
});

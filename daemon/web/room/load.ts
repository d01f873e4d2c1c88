/** Owns finding the room that a page is about. */
import type { RoomRecord, roomGet, roomList } from "../../../shared/api/rooms.ts";
import { get, part, Refused } from "../data/api.ts";

/** By its name where it lives, else as the newest of those that ended and are still known. */
export async function loadRoom(roomId: string, signal: AbortSignal): Promise<RoomRecord> {
  try {
    return await get<typeof roomGet>(`/v1/rooms/${part(roomId)}`, {}, signal);
  } catch (error) {
    if (!(error instanceof Refused) || error.problem.code !== "room_not_found") throw error;
    for (let cursor: string | null = null, pages = 0; pages < 10; pages++) {
      const page: Awaited<ReturnType<typeof get<typeof roomList>>> = await get<typeof roomList>(
        "/v1/rooms",
        { state: "destroyed", limit: 1000, cursor },
        signal,
      );
      const found = page.items.filter((each) => each.room_id === roomId || each.room_uid === roomId);
      const newest = found.sort((one, other) => other.created_at.localeCompare(one.created_at))[0];
      if (newest) return newest;
      cursor = page.next_cursor;
      if (cursor === null) break;
    }
    throw error;
  }
}

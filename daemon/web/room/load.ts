/** Loads the room of a page, and its audit records. */
import type { AuditRecord, auditList, orgAuditList } from "../../../shared/api/audit.ts";
import type { RoomRecord, roomGet, roomList } from "../../../shared/api/rooms.ts";
import { isReading } from "../../../shared/audit-reads.ts";
import { get, part, type Query, Refused } from "../data/api.ts";

/** By its name if it is active, otherwise the newest destroyed room of that name that is still known. */
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

/** Whether it may change what agents do or wait for: a caller that reads messages or output may have waited for them. */
export const movesAgents = (record: AuditRecord): boolean =>
  /^(?:message\.(?!agents_)|barrier\.|exec\.)/.test(record.event) ||
  (record.event.startsWith("sandbox.") && !isReading(record));

/** When the room ended; null if it has not. */
export const endOf = ({ state, status }: Pick<RoomRecord, "state" | "status">): string | null =>
  state === "destroyed" ? status.last_transition_at : null;

/** The audit records of a room, the newest first, even of a destroyed one: rooms of the same name are distinguished by their uid. */
export async function auditOf(room: RoomRecord, query: Query, signal: AbortSignal) {
  const { room_id, room_uid, state } = room;
  if (state === "active") return await get<typeof auditList>(`/v1/rooms/${part(room_id)}/audit`, query, signal);
  const page = await get<typeof orgAuditList>("/v1/orgs/self/audit", { ...query, room_id, until: endOf(room) }, signal);
  const items = page.items.filter((each) => each.room_uid === room_uid);
  // At the records of an earlier room of this name, this one has no more.
  const isWhole = page.items.some((each) => each.room_uid !== null && each.room_uid !== room_uid);
  return { ...page, items, next_cursor: isWhole ? null : page.next_cursor };
}

/** The calls that list rooms and show one. */
import { roomGet, roomList } from "../../../shared/api/rooms.ts";
import { type Bound, bind, type Caller } from "../../core/call/operation.ts";
import { whenResolved } from "../../core/concurrency/maybe-promise.ts";
import type { RoomDeps } from "./deps.ts";
import { pageOfRooms } from "./page.ts";
import type { RoomRecords } from "./record.ts";
import type { RoomRow } from "./table.ts";

export function makeGet(
  deps: RoomDeps,
  records: RoomRecords,
  findRow: (caller: Caller, roomId: string) => RoomRow,
): Bound[] {
  return [
    bind(roomList, {
      run: async (call, input) => {
        const page = pageOfRooms(deps.database.queries, deps.hostId, call.caller, input);
        const items = await Promise.all(page.rows.map((row) => records.of(row)));
        return { outcome: "ok", body: { org_id: call.caller.org_id, items, next_cursor: page.next_cursor } };
      },
    }),
    bind(roomGet, {
      find: (call, params) => findRow(call.caller, String(params.room_id)),
      run: (call, _input, row) => {
        call.audit.room_id = row.room_id;
        call.audit.room_uid = row.room_uid;
        return whenResolved(records.of(row), (body) => ({ outcome: "ok", body }));
      },
    }),
  ];
}

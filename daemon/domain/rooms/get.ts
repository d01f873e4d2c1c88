/** Owns the calls that list rooms and show one. */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import { roomGet, roomList } from "../../../shared/api/rooms.ts";
import { readCursor, toPage } from "../../core/cursor.ts";
import { type Bound, bind, type Caller } from "../../core/operation.ts";
import type { RoomDeps } from "./deps.ts";
import type { RoomRecords } from "./record.ts";
import { listRooms } from "./store.ts";
import type { RoomRow } from "./table.ts";

export function makeGet(
  deps: RoomDeps,
  records: RoomRecords,
  findRow: (caller: Caller, roomId: string) => RoomRow,
): Bound[] {
  return [
    bind(roomList, {
      run: async (call, input) => {
        const limit = input.limit ?? DEFAULT_PAGE;
        const kind = `rooms ${call.caller.org_id}`;
        const rows = listRooms(deps.database.queries, {
          org_id: call.caller.org_id,
          room_ids: call.caller.room_ids,
          state: input.state,
          label: input.label,
          after: readCursor(kind, input.cursor),
          limit: limit + 1,
        });
        const page = toPage(kind, rows, limit, (row) => row.room_uid);
        const items = await Promise.all(page.rows.map((row) => records.of(row)));
        return { outcome: "ok", body: { org_id: call.caller.org_id, items, next_cursor: page.next_cursor } };
      },
    }),
    bind(roomGet, {
      find: (call, params) => findRow(call.caller, String(params.room_id)),
      run: async (call, _input, row) => {
        call.audit.room_id = row.room_id;
        call.audit.room_uid = row.room_uid;
        return { outcome: "ok", body: await records.of(row) };
      },
    }),
  ];
}

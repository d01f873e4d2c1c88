/** Changes a room's labels and its expiry. */
import { roomUpdate } from "../../../shared/api/rooms.ts";
import { type Bound, bind, type Caller } from "../../core/call/operation.ts";
import { requireActive, requireHere } from "../../core/call/room-target.ts";
import { after, now } from "../../core/clock.ts";
import type { RoomDeps } from "./deps.ts";
import type { RoomRecords } from "./record.ts";
import { getRoom, updateRoom } from "./store.ts";
import type { RoomRow } from "./table.ts";
import { toTarget } from "./target.ts";

export function makeUpdate(
  deps: RoomDeps,
  records: RoomRecords,
  findRow: (caller: Caller, roomId: string) => RoomRow,
  schedule: (row: RoomRow) => void,
): Bound {
  const { database, paths } = deps;
  return bind(roomUpdate, {
    find: (call, params) => findRow(call.caller, String(params.room_id)),
    run: async (call, { labels, expires_in_seconds }, row) => {
      call.audit.room_id = row.room_id;
      call.audit.room_uid = row.room_uid;
      const updated_at = now();
      const expires_at =
        expires_in_seconds === undefined || expires_in_seconds === null ? null : after(updated_at, expires_in_seconds);
      const changed = await database.commit((queries) => {
        // Its destruction may have started since it was found.
        const current = getRoom(queries, row.room_uid) ?? row;
        const target = toTarget(current, paths);
        requireHere(target);
        requireActive(target);
        const change = {
          updated_at,
          ...(labels === undefined ? {} : { labels }),
          ...(expires_in_seconds === undefined ? {} : { expires_at }),
        };
        updateRoom(queries, row.room_uid, change);
        return { ...current, ...change };
      });
      schedule(changed);
      return { outcome: "ok", body: await records.of(changed) };
    },
  });
}

/** Owns the calls that list a room's sandboxes and show one. */
import { DEFAULT_PAGE } from "../../shared/api/contract.ts";
import { sandboxGet, sandboxList } from "../../shared/api/sandboxes.ts";
import { makeCursor, readCursor } from "../core/cursor.ts";
import { type Bound, bind } from "../core/operation.ts";
import { findTarget } from "./find.ts";
import type { SandboxDeps } from "./index.ts";
import { toSandboxRecord } from "./record.ts";
import { listSandboxes } from "./store.ts";

export function makeGet(deps: SandboxDeps): Bound[] {
  return [
    bind(sandboxList, {
      find: (call, params) => deps.findRoom(call.caller, String(params.room_id)),
      run: (_call, input, room) => {
        const limit = input.limit ?? DEFAULT_PAGE;
        const kind = `sandboxes ${room.room_uid}`;
        const rows = listSandboxes(deps.database.queries, {
          room_uid: room.room_uid,
          state: input.state,
          label: input.label,
          after: readCursor(kind, input.cursor),
          limit: limit + 1,
        });
        const last = rows.length > limit ? rows[limit - 1] : undefined;
        return {
          outcome: "ok",
          body: {
            items: rows.slice(0, limit).map((row) => toSandboxRecord(row, room.room_id)),
            next_cursor: last ? makeCursor(kind, last.sandbox_id) : null,
          },
        };
      },
    }),
    bind(sandboxGet, {
      find: (call, params) => findTarget(deps, call, params),
      run: (_call, _input, { room, row }) => ({ outcome: "ok", body: toSandboxRecord(row, room.room_id) }),
    }),
  ];
}

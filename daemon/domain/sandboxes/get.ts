/** Owns the calls that list a room's sandboxes and show one. */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import { sandboxGet, sandboxList } from "../../../shared/api/sandboxes.ts";
import { readCursor, toPage } from "../../core/cursor.ts";
import { type Bound, bind } from "../../core/operation.ts";
import type { SandboxDeps } from "./deps.ts";
import { findRoomTarget, findTarget } from "./find.ts";
import { toSandboxRecord } from "./record.ts";
import { listSandboxes } from "./store.ts";
import type { Supervisors } from "./supervisors.ts";
import type { SandboxRow } from "./table.ts";

const isStarting = ({ state }: SandboxRow) => state === "creating" || state === "starting";

export function makeGet(deps: SandboxDeps, supervisors: Supervisors): Bound[] {
  return [
    bind(sandboxList, {
      find: (call, params) => findRoomTarget(deps, call, params),
      run: ({ caller }, input, room) => {
        const limit = input.limit ?? DEFAULT_PAGE;
        const kind = `sandboxes ${room.room_uid}`;
        const rows = listSandboxes(deps.database.queries, {
          room_uid: room.room_uid,
          agent_id: caller.agent_id,
          state: input.state,
          label: input.label,
          after: readCursor(kind, input.cursor),
          limit: limit + 1,
        });
        const page = toPage(kind, rows, limit, (row) => row.sandbox_id);
        const items = page.rows.map((row) => toSandboxRecord(row, room.room_id, deps.portsOf(row.sandbox_id)));
        return { outcome: "ok", body: { items, next_cursor: page.next_cursor } };
      },
    }),
    bind(sandboxGet, {
      find: (call, params) => findTarget(deps, call, params),
      run: async ({ signal }, { wait_ms = 0 }, { room, row }) => {
        const supervisor = wait_ms > 0 && isStarting(row) ? supervisors.get(row.sandbox_id) : undefined;
        const started = supervisor?.published.until((now) => !isStarting(now), wait_ms, signal);
        // Whatever it is by then is the answer.
        const seen = (await started?.catch(() => supervisor?.row)) ?? row;
        return { outcome: "ok", body: toSandboxRecord(seen, room.room_id, deps.portsOf(row.sandbox_id)) };
      },
    }),
  ];
}

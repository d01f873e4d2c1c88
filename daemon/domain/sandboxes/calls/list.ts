/** The calls that list sandboxes: of one room, and of all rooms of an organization. */

import { DEFAULT_PAGE, type InputOf } from "../../../../shared/api/contract.ts";
import { orgSandboxList, type SandboxRecord, sandboxList } from "../../../../shared/api/sandboxes.ts";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import { makeCursor, readCursor, toPage } from "../../../core/call/cursor.ts";
import { type Bound, bind, type Caller } from "../../../core/call/operation.ts";
import { findRoom } from "../../../core/call/room-target.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import { toSandboxRecord } from "../record.ts";
import { listSandboxes } from "../store.ts";

type Page = { items: SandboxRecord[]; next_cursor: string | null };
type Filter = Pick<InputOf<typeof sandboxList>, "state" | "label" | "limit" | "cursor">;

export function makeList(deps: SandboxDeps): Bound[] {
  const pageOf = (
    kind: string,
    { org_id, agent_id }: Caller,
    { state, label, limit = DEFAULT_PAGE, cursor }: Filter,
    room_uids: readonly RoomUid[] | null,
  ): Page => {
    const filter = { org_id, agent_id, room_uids, state, label, after: readCursor(kind, cursor) };
    const rows = listSandboxes(deps.database.queries, { ...filter, limit: limit + 1 });
    const page = toPage(kind, rows, limit, (row) => row.sandbox_id);
    const items = page.rows.map((row) =>
      toSandboxRecord(row, deps.currentRoom(row.room_uid).room_id, deps.portsOf(row.sandbox_id)),
    );
    return { items, next_cursor: page.next_cursor };
  };

  return [
    bind(sandboxList, {
      find: (call, params) => findRoom(deps, call, params),
      run: ({ caller }, input, { room_uid }) => ({
        outcome: "ok",
        body: pageOf(`sandboxes ${room_uid}`, caller, input, [room_uid]),
      }),
    }),
    bind(orgSandboxList, {
      run: ({ caller, audit }, { room_id, ...input }) => {
        if (room_id !== undefined) audit.room_id = room_id;
        const body = pageOf(kindOf(caller.org_id), caller, input, roomsOf(deps, caller, room_id));
        return { outcome: "ok", body };
      },
    }),
  ];
}

const kindOf = (orgId: OrgId) => `sandboxes ${orgId}`;

/** The cursor of the page after a sandbox; identical on all hosts. */
export function cursorAfterSandbox(orgId: OrgId, sandboxId: string): string {
  return makeCursor(kindOf(orgId), sandboxId);
}

/** The rooms visible to the caller; null: all of its organization. Throws room_not_found. */
function roomsOf(deps: SandboxDeps, caller: Caller, roomId: string | undefined): RoomUid[] | null {
  if (roomId !== undefined) return [deps.findRoom(caller, roomId).room_uid];
  if (caller.room_ids === null) return null;
  return caller.room_ids.flatMap((id) => {
    try {
      return [deps.findRoom(caller, id).room_uid];
    } catch (error) {
      // A key outlives its rooms, and a room may be on another host.
      if (error instanceof ServiceError) return [];
      throw error;
    }
  });
}

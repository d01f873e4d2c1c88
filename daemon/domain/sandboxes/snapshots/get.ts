/** Operations that list a room's snapshots, show one and delete one. */
import { DEFAULT_PAGE } from "../../../../shared/api/contract.ts";
import { snapshotDelete, snapshotGet, snapshotList } from "../../../../shared/api/snapshots.ts";
import { readCursor, toPage } from "../../../core/call/cursor.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { findRoom, type RoomTarget } from "../../../core/call/room-target.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import { toSnapshotRecord } from "./record.ts";
import { findSnapshot, listSnapshots } from "./store.ts";
import type { SnapshotRow } from "./table.ts";

export function makeSnapshotGet(deps: SandboxDeps, remove: (row: SnapshotRow) => Promise<void>): Bound[] {
  const find = (call: KeyCall, params: Record<string, string>) => findSnapshotTarget(deps, call, params);
  return [
    bind(snapshotList, {
      find: (call, params) => findRoom(deps, call, params),
      run: ({ caller }, input, room) => {
        const limit = input.limit ?? DEFAULT_PAGE;
        const kind = `snapshots ${room.room_uid}`;
        const rows = listSnapshots(deps.database.queries, {
          room_uid: room.room_uid,
          agent_id: caller.agent_id ?? input.agent_id ?? null,
          after: readCursor(kind, input.cursor),
          limit: limit + 1,
        });
        const page = toPage(kind, rows, limit, (row) => row.snapshot_id);
        const items = page.rows.map((row) => toSnapshotRecord(row, room.room_id));
        return { outcome: "ok", body: { items, next_cursor: page.next_cursor } };
      },
    }),
    bind(snapshotGet, {
      find,
      run: (_call, _input, { room, snapshot }) => ({ outcome: "ok", body: toSnapshotRecord(snapshot, room.room_id) }),
    }),
    bind(snapshotDelete, {
      find,
      run: async (call, _input, { snapshot }) => {
        const { snapshot_id } = snapshot;
        call.audit.details = { snapshot_id };
        await remove(snapshot);
        return { outcome: "ok", body: { snapshot_id, state: "deleted" as const } };
      },
    }),
  ];
}

/** A caller that is bound to an agent has access to that agent's snapshots only. Throws room_not_found, snapshot_not_found. */
function findSnapshotTarget(
  deps: SandboxDeps,
  call: KeyCall,
  params: Record<string, string>,
): { room: RoomTarget; snapshot: SnapshotRow } {
  const room = findRoom(deps, call, params);
  return { room, snapshot: requireSnapshot(deps, call, room, String(params.snapshot_id)) };
}

/** Throws snapshot_not_found. */
export function requireSnapshot(
  deps: SandboxDeps,
  { caller, audit }: KeyCall,
  room: RoomTarget,
  snapshotId: string,
): SnapshotRow {
  const snapshot = findSnapshot(deps.database.queries, room.room_uid, snapshotId);
  if (!snapshot || (caller.agent_id !== null && caller.agent_id !== snapshot.agent_id)) {
    throw new ServiceError("snapshot_not_found", { detail: `Room ${room.room_id} has no snapshot ${snapshotId}.` });
  }
  audit.agent_id = snapshot.agent_id;
  return snapshot;
}

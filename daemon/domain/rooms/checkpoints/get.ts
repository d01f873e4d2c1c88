/** The calls that list a room's checkpoints, show one and delete one. */
import { checkpointDelete, checkpointGet, checkpointList } from "../../../../shared/api/checkpoints.ts";
import { DEFAULT_PAGE } from "../../../../shared/api/contract.ts";
import { readCursor, toPage } from "../../../core/call/cursor.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRow } from "../table.ts";
import { requireSandboxes } from "./fork.ts";
import { toCheckpointRecord } from "./record.ts";
import { findCheckpoint, listCheckpoints } from "./store.ts";
import type { CheckpointRow } from "./table.ts";

type FindRow = (call: KeyCall, params: Record<string, string>) => RoomRow;

export function makeCheckpointGet(
  deps: RoomDeps,
  findRow: FindRow,
  remove: (row: CheckpointRow) => Promise<void>,
): Bound[] {
  const { queries } = deps.database;
  const find = (call: KeyCall, params: Record<string, string>) => {
    const room = findRow(call, params);
    return { room, checkpoint: requireCheckpoint(deps, room, String(params.checkpoint_id)) };
  };
  const shown = (row: CheckpointRow, { room_id }: RoomRow) =>
    toCheckpointRecord(row, room_id, deps.branch.sandboxes.bytesOf(queries, row.checkpoint_id));
  return [
    bind(checkpointList, {
      find: findRow,
      run: (_call, input, room) => {
        const limit = input.limit ?? DEFAULT_PAGE;
        const kind = `checkpoints ${room.room_uid}`;
        const after = readCursor(kind, input.cursor);
        const rows = listCheckpoints(queries, { room_uid: room.room_uid, after, limit: limit + 1 });
        const page = toPage(kind, rows, limit, (row) => row.checkpoint_id);
        const items = page.rows.map((row) => shown(row, room));
        return { outcome: "ok", body: { items, next_cursor: page.next_cursor } };
      },
    }),
    bind(checkpointGet, {
      find,
      run: (_call, _input, { room, checkpoint }) => ({ outcome: "ok", body: shown(checkpoint, room) }),
    }),
    bind(checkpointDelete, {
      find,
      run: async (call, _input, { checkpoint }) => {
        requireSandboxes(call);
        const { checkpoint_id } = checkpoint;
        call.audit.details = { checkpoint_id };
        await remove(checkpoint);
        return { outcome: "ok", body: { checkpoint_id, state: "deleted" as const } };
      },
    }),
  ];
}

/** Throws checkpoint_not_found. */
export function requireCheckpoint(
  { database }: Pick<RoomDeps, "database">,
  { room_uid, room_id }: Pick<RoomRow, "room_uid" | "room_id">,
  checkpointId: string,
): CheckpointRow {
  const checkpoint = findCheckpoint(database.queries, room_uid, checkpointId);
  if (checkpoint) return checkpoint;
  throw new ServiceError("checkpoint_not_found", { detail: `Room ${room_id} has no checkpoint ${checkpointId}.` });
}

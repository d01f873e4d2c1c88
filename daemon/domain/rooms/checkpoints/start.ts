/**
 * Last part of making a room from a checkpoint, or of restoring it: starts its sandboxes, clears `branching`, and wakes the room's waiting
 * calls.
 */
import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import type { SandboxId } from "../../../../shared/ids.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { now, wallMs } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError } from "../../../core/service-error.ts";
import { rowsOf } from "../../../db/room-rows.ts";
import type { ForkedItem } from "../../sandboxes/index.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import { getRoom, updateRoom } from "../store.ts";
import type { Branching, RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import { wakeNouns } from "./room-state.ts";
import type { CheckpointRow } from "./table.ts";

export interface Started {
  room: RoomRecord;
  items: ForkedItem[];
}

/** `branching` of the room's row until it is done. */
export function starting(
  { checkpoint_id }: Pick<CheckpointRow, "checkpoint_id">,
  { caller }: KeyCall,
  as: ReadonlyMap<string, SandboxId>,
): Branching {
  return { kind: "start", checkpoint_id, key_id: caller.key_id, as: Object.fromEntries(as) };
}

/** The caller keeps the checkpoint's snapshots in use during this. */
export async function startRoom(
  { deps, records }: { deps: RoomDeps; records: RoomRecords },
  call: KeyCall,
  row: RoomRow,
  { sandboxes, cut_at }: CheckpointRow,
  as: ReadonlyMap<string, SandboxId>,
): Promise<Started> {
  const { database, branch, paths, log } = deps;
  const { room_uid, org_id } = row;
  const items = await branch.sandboxes.start(call, toTarget(row, paths), sandboxes, as);
  await faultPoint("start.begun");
  const whole = await database.commit((queries) => {
    updateRoom(queries, room_uid, { branching: null, updated_at: now() });
    return getRoom(queries, room_uid) ?? row;
  });
  const pausedMs = Math.max(0, wallMs() - Date.parse(cut_at));
  const room = { room_uid, org_id, pausedMs, rows: rowsOf(database.queries, room_uid) };
  await wakeNouns(branch.nouns, room).catch((error: unknown) =>
    log.error("failed to wake waits in a room", { room_uid, error: describeError(error) }),
  );
  return { room: await records.of(whole), items };
}

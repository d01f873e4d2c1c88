/** Database state of a room that moves: read at one moment, and written in a transaction. */
import { MAX_CHECKPOINTS } from "../../../../shared/api/checkpoints.ts";
import { now } from "../../../core/clock.ts";
import type { Steps } from "../../../core/loop/index.ts";
import type { BranchedRoom } from "../../../db/branch.ts";
import type { Queries } from "../../../db/client.ts";
import type { RowsKey } from "../../../db/room-rows.ts";
import { appendAudit, giveEvents, type Head, type MovedEvents, RoomNumbers } from "../../audit/index.ts";
import type { MovedSandboxes, Putting } from "../../sandboxes/index.ts";
import { giveNouns, type RoomState, takeNouns } from "../checkpoints/room-state.ts";
import { deleteCheckpointsOf, insertCheckpoint, listCheckpoints } from "../checkpoints/store.ts";
import type { CheckpointRow } from "../checkpoints/table.ts";
import type { RoomDeps } from "../deps.ts";
import { getRoom, insertRoom, updateRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import type { RoomHeader } from "./format.ts";

export interface MovedState extends RoomState {
  sandboxes: MovedSandboxes;
  checkpoints: CheckpointRow[];
  /** An older host's has none. */
  events?: MovedEvents;
}

const SYSTEM = { type: "system", id: "rooms", name: "rooms" };

/** Further description of the room. */
export function aboutOf({
  row,
  epoch,
  drive_bytes,
  other_bytes,
  head,
}: {
  row: RoomRow;
  epoch: number;
  drive_bytes: number;
  other_bytes: number;
  head: Head | null;
}): RoomHeader {
  const { room_uid, room_id, org_id, labels, drive_limit_bytes, created_at, updated_at, expires_at } = row;
  const { created_by_type, created_by_id, keep_drive, former_ids } = row;
  return {
    room: {
      ...{ room_uid, room_id, org_id, labels, drive_limit_bytes, created_at, updated_at, expires_at },
      ...{ created_by_type, created_by_id, keep_drive, former_ids: [...former_ids] },
    },
    ...{ from: row.host_id, epoch, drive_bytes, other_bytes, head },
  };
}

/** Runs once the room's rows can no longer change. */
export function* takeRows({ branch, sandboxes }: RoomDeps, queries: Queries, row: RoomRow): Steps<MovedState> {
  const { room_uid } = row;
  return {
    events: yield* new RoomNumbers(queries, row).taken(),
    nouns: yield* takeNouns(queries, branch.nouns, room_uid),
    calls: yield* branch.calls.takeRoom(queries, row),
    sandboxes: sandboxes.moves.take(queries, room_uid),
    checkpoints: listCheckpoints(queries, { room_uid, after: null, limit: MAX_CHECKPOINTS }),
  };
}

/** The room is this host's from here on. Its nouns were staged under the key `rows`, and its calls were put. */
export function giveRows(
  deps: RoomDeps,
  queries: Queries,
  { room, from, epoch, head }: RoomHeader,
  state: MovedState,
  { rows, ...putting }: Putting & { rows: RowsKey },
): RoomRow {
  const { branch, hostId } = deps;
  const moment = now();
  const row: RoomRow = {
    ...(room as unknown as RoomRow),
    ...{ host_id: hostId, state: "active", drive_until_at: null, branching: null, epoch: epoch + 1 },
    ...{ status_reason: "moved", status_message: `The room came from ${from}.`, last_transition_at: moment },
  };
  // The room may have been on this host before.
  if (getRoom(queries, row.room_uid)) updateRoom(queries, row.room_uid, row);
  else insertRoom(queries, row);
  deps.sandboxes.moves.put(queries, row, state.sandboxes, putting);
  const owner = { room_uid: row.room_uid, org_id: row.org_id };
  deleteCheckpointsOf(queries, row.room_uid);
  for (const checkpoint of state.checkpoints) insertCheckpoint(queries, { ...checkpoint, ...owner });
  giveNouns(queries, branch.nouns, state.nouns, branchedOf(row, rows));
  const last = head?.seq ?? 0;
  giveEvents(queries, row, state.events ?? { last, since: last, rows: [] });
  recordMove(queries, row, "room.moved_in", { from, epoch: epoch + 1, head });
  return row;
}

/** A move does not pause the room's clock. */
export function branchedOf({ room_uid, org_id }: Pick<RoomRow, "room_uid" | "org_id">, rows: RowsKey): BranchedRoom {
  return { room_uid, org_id, pausedMs: 0, rows };
}

/** Each chain names the head of the other: a verification compares it with that chain (../../audit/chain/compare-named.ts). */
export function recordMove(
  queries: Queries,
  { org_id, room_id, room_uid }: Pick<RoomRow, "org_id" | "room_id" | "room_uid">,
  event: "room.moved_in" | "room.moved_out",
  details: Record<string, unknown>,
): void {
  const entry = { event, outcome: "success" as const, at: now(), org_id, room_id, room_uid };
  appendAudit(queries, { ...entry, actor: SYSTEM, source: "reconciler", details });
}

/** The calls that list barriers, show one, and cancel one. */
import { type BarrierRecord, barrierCancel, barrierGet, barrierList } from "../../../shared/api/barriers.ts";
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { readCursor, toPage } from "../../core/call/cursor.ts";
import { type Bound, bind, type KeyCall } from "../../core/call/operation.ts";
import { findRoom, requireActive } from "../../core/call/room-target.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { barrierBell } from "./arrive.ts";
import type { BarrierDeps } from "./deps.ts";
import { missingOf } from "./state.ts";
import { findBarrier, listBarriers, saveBarrier } from "./store.ts";
import type { BarrierRow } from "./table.ts";

/** Cursor kind without the room: a fork accepts the cursors of its source room. */
const CURSOR = "barriers";

/** Maximum of agent names in a page (some milliseconds of work); each barrier may have two thousand. */
const MAX_NAMES = 10_000;
const ROWS_AT_ONCE = 16;

export function makeGet(deps: BarrierDeps): Bound[] {
  const { bells, database } = deps;
  const find = (call: KeyCall, params: Record<string, string>) => {
    const room = findRoom(deps, call, params);
    const row = findBarrier(database.queries, room.room_uid, String(params.barrier_id));
    if (row) return { room, row };
    throw new ServiceError("barrier_not_found", {
      detail: `Room ${room.room_id} has no barrier ${params.barrier_id}.`,
    });
  };
  return [
    bind(barrierList, {
      find: (call, params) => findRoom(deps, call, params),
      run: (_call, input, { room_uid }) => {
        const after = readCursor(CURSOR, input.cursor);
        const { rows, most } = rowsOf(database.queries, room_uid, after, input.limit ?? DEFAULT_PAGE);
        const page = toPage(CURSOR, rows, most, ({ barrier_id }) => barrier_id);
        return { outcome: "ok", body: { items: page.rows.map(toBarrier), next_cursor: page.next_cursor } };
      },
    }),
    bind(barrierGet, {
      find,
      run: (_call, _input, { row }) => ({ outcome: "ok", body: toBarrier(row) }),
    }),
    bind(barrierCancel, {
      find,
      run: async (call, _input, { room, row }) => {
        requireActive(room);
        const { room_uid, barrier_id } = row;
        call.audit.details = { barrier_id };
        const ended = await database.commit((queries) => {
          const newest = findBarrier(queries, room_uid, barrier_id) ?? row;
          if (newest.state !== "waiting") return newest;
          const cancelled: BarrierRow = { ...newest, state: "cancelled", ended_at: now() };
          saveBarrier(queries, cancelled);
          return cancelled;
        });
        bells.ring(room_uid, barrierBell(barrier_id));
        return { outcome: "cancelled", body: toBarrier(ended) };
      },
    }),
  ];
}

/** Up to one row more than `most`, the number of rows to show, if there are more. */
function rowsOf(queries: Queries, roomUid: RoomUid, after: string | null, limit: number) {
  const rows: BarrierRow[] = [];
  for (let [from, names] = [after, 0]; rows.length <= limit; ) {
    const batchSize = Math.min(ROWS_AT_ONCE, limit + 1 - rows.length);
    const read = listBarriers(queries, roomUid, from, batchSize);
    for (const row of read) {
      rows.push(row);
      names += row.arrived.length + (row.participants?.length ?? 0);
      if (rows.length > 1 && names > MAX_NAMES) return { rows, most: rows.length - 1 };
    }
    if (read.length < batchSize) break;
    from = rows.at(-1)?.barrier_id ?? null;
  }
  return { rows, most: limit };
}

function toBarrier(row: BarrierRow): BarrierRecord {
  const { barrier_id, generation, state, parties, arrived, participants, opened_at, ended_at } = row;
  return {
    barrier_id,
    generation,
    state,
    parties,
    arrived,
    missing: missingOf(row),
    participants,
    opened_at,
    ended_at,
  };
}

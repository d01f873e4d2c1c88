/** Owns the calls that list barriers, show one, and cancel one. */
import { type BarrierRecord, barrierCancel, barrierGet, barrierList } from "../../../shared/api/barriers.ts";
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import { now } from "../../core/clock.ts";
import { readCursor, toPage } from "../../core/cursor.ts";
import { type Bound, bind, type KeyCall } from "../../core/operation.ts";
import { requireActive } from "../../core/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { BarrierDeps } from "./deps.ts";
import { barrierBell, findRoom } from "./find.ts";
import { missingOf } from "./state.ts";
import { findBarrier, listBarriers, saveBarrier } from "./store.ts";
import type { BarrierRow } from "./table.ts";

/** Also of the room that this one was made from. */
const CURSOR = "barriers";

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
        const limit = input.limit ?? DEFAULT_PAGE;
        const rows = listBarriers(database.queries, room_uid, readCursor(CURSOR, input.cursor), limit + 1);
        const page = toPage(CURSOR, rows, limit, ({ barrier_id }) => barrier_id);
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

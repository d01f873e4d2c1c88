/** SQL of barriers. */
import { and, asc, eq, gt, inArray, lt, sql } from "drizzle-orm";
import type { RoomUid } from "../../../shared/ids.ts";
import type { Steps } from "../../core/loop/index.ts";
import { preparedBy, type Queries, rawQuery } from "../../db/client.ts";
import { type RowsKey, roomOf, rowsOf } from "../../db/room-rows.ts";
import { type BarrierRow, barriers } from "./table.ts";

const named = (queries: Queries, roomUid: RoomUid, barrierId: string) =>
  and(eq(barriers.room_uid, rowsOf(queries, roomUid)), eq(barriers.barrier_id, barrierId));

/** The newest generation, or the requested one. */
export function findBarrier(
  queries: Queries,
  roomUid: RoomUid,
  barrierId: string,
  generation?: number,
): BarrierRow | undefined {
  const row = queries
    .select()
    .from(barriers)
    .where(
      and(
        named(queries, roomUid, barrierId),
        generation === undefined ? undefined : eq(barriers.generation, generation),
      ),
    )
    .orderBy(sql`${barriers.generation} DESC`)
    .limit(1)
    .get();
  return row && { ...row, room_uid: roomUid };
}

/** Bytes of a row and its index entries, without names. */
const ROW_BYTES = 256;

/** Bytes of the longest agent name in a list. */
const NAME_BYTES = 131;

/**
 * Upper bound of a generation's bytes: all participants may arrive, and be dead; for parties without names the length of their names is
 * unknown.
 */
export function bytesOf({ participants, parties }: Pick<BarrierRow, "participants" | "parties">): number {
  return ROW_BYTES + (participants ? 3 * Buffer.byteLength(JSON.stringify(participants)) : NAME_BYTES * parties);
}

/** The same bound as SQL, for a row of the table. */
const BYTES_OF_ROW = `${ROW_BYTES} + ifnull(3 * octet_length(participants), ${NAME_BYTES} * parties)`;

/** Version of a waiting generation, read without its names; null once it is over. */
export function waitingVersion(
  queries: Queries,
  roomUid: RoomUid,
  barrierId: string,
  generation: number,
): number | null {
  return waitingVersionOf(queries)([rowsOf(queries, roomUid), barrierId, generation])[0]?.arrived_bytes ?? null;
}

// Arrivals are only added.
const waitingVersionOf = preparedBy((queries) =>
  rawQuery<{ arrived_bytes: number }>(
    queries,
    `SELECT octet_length(arrived) AS arrived_bytes FROM barriers
     WHERE room_uid = ? AND barrier_id = ? AND generation = ? AND state = 'waiting'`,
  ),
);

export function saveBarrier(queries: Queries, row: BarrierRow): void {
  const { state, arrived, dead, ended_at } = row;
  queries
    .insert(barriers)
    .values({ ...row, room_uid: rowsOf(queries, row.room_uid) })
    .onConflictDoUpdate({
      target: [barriers.room_uid, barriers.barrier_id, barriers.generation],
      set: { state, arrived, dead, ended_at },
    })
    .run();
}

/** A literal, not a parameter, so that the partial index of waiting generations is used. */
const isWaitingIn = (rows: RowsKey) => and(eq(barriers.room_uid, rows), sql`${barriers.state} = 'waiting'`);

/** Names of open barriers, the oldest first; read from the index alone. */
export function openNames(queries: Queries, roomUid: RoomUid): string[] {
  return openNamesOf(queries)([rowsOf(queries, roomUid)]).map(({ barrier_id }) => barrier_id);
}

const openNamesOf = preparedBy((queries) =>
  rawQuery<Pick<BarrierRow, "barrier_id">>(
    queries,
    `SELECT barrier_id FROM barriers INDEXED BY barriers_waiting
     WHERE room_uid = ? AND state = 'waiting' ORDER BY opened_at, barrier_id`,
  ),
);

/** Whether this barrier has the agent among its named participants and still waits for it. */
export function isWaitingFor(queries: Queries, roomUid: RoomUid, barrierId: string, agentId: string): boolean {
  return isWaitingForOf(queries)([agentId, rowsOf(queries, roomUid), barrierId])[0]?.is_named === 1;
}

const isWaitingForOf = preparedBy((queries) =>
  rawQuery<{ is_named: number }>(
    queries,
    `SELECT EXISTS (SELECT 1 FROM json_each(participants) WHERE value = ?) AS is_named
     FROM barriers WHERE room_uid = ? AND barrier_id = ? AND state = 'waiting'`,
  ),
);

/**
 * Breaks the barriers that wait for one of these named agents, in one statement for all; returns these barriers. `barrierIds` restricts it
 * to those barriers.
 */
export function breakBarriers(
  queries: Queries,
  roomUid: RoomUid,
  agentIds: readonly string[],
  ended_at: string,
  barrierIds?: readonly string[],
): string[] {
  const theirs = sql`FROM json_each(${barriers.participants}) AS named
    WHERE named.value IN (SELECT value FROM json_each(${JSON.stringify(agentIds)}))`;
  const rows = queries
    .update(barriers)
    .set({ state: "broken", dead: sql`(SELECT json_group_array(named.value) ${theirs})`, ended_at })
    .where(
      and(
        isWaitingIn(rowsOf(queries, roomUid)),
        barrierIds && inArray(barriers.barrier_id, [...barrierIds]),
        sql`EXISTS (SELECT 1 ${theirs})`,
      ),
    )
    .returning({ barrier_id: barriers.barrier_id })
    .all();
  return rows.map((row) => row.barrier_id);
}

/** Agents that are waited for by name, in any room. */
export function waitedFor(queries: Queries): { room_uid: RoomUid; agent_id: string }[] {
  const rows = queries.all<{ rows: RowsKey; agent_id: string }>(
    sql`SELECT DISTINCT ${barriers.room_uid} AS rows, each.value AS agent_id
        FROM ${barriers}, json_each(${barriers.participants}) AS each WHERE ${barriers.state} = 'waiting'`,
  );
  return rows.flatMap(({ rows, agent_id }) => {
    const room_uid = roomOf(queries, rows);
    return room_uid === null ? [] : [{ room_uid, agent_id }];
  });
}

/** The same of one room. */
export function waitedForIn(queries: Queries, roomUid: RoomUid): string[] {
  const rows = queries.all<{ agent_id: string }>(
    sql`SELECT DISTINCT each.value AS agent_id FROM ${barriers}, json_each(${barriers.participants}) AS each
        WHERE ${barriers.room_uid} = ${rowsOf(queries, roomUid)} AND ${barriers.state} = 'waiting'`,
  );
  return rows.map(({ agent_id }) => agent_id);
}

/** The newest generation of each barrier, by name. */
export function listBarriers(queries: Queries, roomUid: RoomUid, after: string | null, limit: number): BarrierRow[] {
  const rows = queries
    .select()
    .from(barriers)
    .where(
      and(
        eq(barriers.room_uid, rowsOf(queries, roomUid)),
        after === null ? undefined : gt(barriers.barrier_id, after),
        sql`${barriers.generation} = (SELECT max(b.generation) FROM barriers b WHERE b.room_uid = ${barriers.room_uid} AND b.barrier_id = ${barriers.barrier_id})`,
      ),
    )
    .orderBy(asc(barriers.barrier_id))
    .limit(limit)
    .all();
  return rows.map((row) => ({ ...row, room_uid: roomUid }));
}

/**
 * The open generations of a room, the oldest first: at most this many, and at most this many bytes of names together. Uses the index of
 * open generations: most of a room's are over. `hasMore`: these are not all.
 */
export function* openBarriers(
  queries: Queries,
  roomUid: RoomUid,
  most: { barriers: number; nameBytes: number },
): Steps<{ open: BarrierRow[]; hasMore: boolean }> {
  const found = openOf(queries)([rowsOf(queries, roomUid), most.barriers + 1]);
  let left = most.nameBytes;
  const read = found.slice(0, most.barriers).filter(({ bytes }) => {
    left -= bytes;
    return left >= 0;
  });
  const open: BarrierRow[] = [];
  for (const { barrier_id, generation } of read) {
    yield;
    const row = findBarrier(queries, roomUid, barrier_id, generation);
    if (row) open.push(row);
  }
  return { open, hasMore: read.length < found.length };
}

const openOf = preparedBy((queries) =>
  rawQuery<Pick<BarrierRow, "barrier_id" | "generation"> & { bytes: number }>(
    queries,
    `SELECT barrier_id, generation, coalesce(octet_length(participants), 0) + octet_length(arrived) AS bytes
     FROM barriers INDEXED BY barriers_waiting
     WHERE room_uid = ? AND state = 'waiting' ORDER BY opened_at, barrier_id LIMIT ?`,
  ),
);

/** Position of a generation in the order of barrier names; the room's start precedes all. */
export interface CountedUpTo {
  barrier_id: string;
  generation: number;
}

export const ROOM_START: CountedUpTo = { barrier_id: "", generation: 0 };

/** Names and bytes of at most `most` generations of a room after a position; `upTo` is null at the room's end. */
export function countSome(
  queries: Queries,
  roomUid: RoomUid,
  after: CountedUpTo,
  most: number,
): { names: number; bytes: number; upTo: CountedUpTo | null } {
  const { barrier_id, generation } = after;
  const { countedUpTo, counted } = countsOf(queries);
  const rows = rowsOf(queries, roomUid);
  const upTo = countedUpTo([rows, barrier_id, generation, most - 1])[0] ?? null;
  // No name is greater: names have ASCII characters only.
  const last = upTo ?? { barrier_id: "\u{10ffff}", generation: 0 };
  const [sums] = counted([rows, barrier_id, generation, last.barrier_id, last.generation]);
  return { names: sums?.names ?? 0, bytes: sums?.bytes ?? 0, upTo };
}

const countsOf = preparedBy((queries) => ({
  countedUpTo: rawQuery<CountedUpTo>(
    queries,
    `SELECT barrier_id, generation FROM barriers WHERE room_uid = ? AND (barrier_id, generation) > (?, ?)
     ORDER BY barrier_id, generation LIMIT 1 OFFSET ?`,
  ),
  // Counts a name only in the batch that contains its first generation.
  counted: rawQuery<{ names: number; bytes: number }>(
    queries,
    `SELECT count(DISTINCT iif(barrier_id > ?2, barrier_id, NULL)) AS names, ifnull(sum(${BYTES_OF_ROW}), 0) AS bytes
     FROM barriers WHERE room_uid = ?1 AND (barrier_id, generation) > (?2, ?3) AND (barrier_id, generation) <= (?4, ?5)`,
  ),
}));

/** Removes the generations before `generation`. Returns the bytes that they took. */
export function removeGenerations(queries: Queries, roomUid: RoomUid, barrierId: string, generation: number): number {
  const { participants, parties } = barriers;
  const removed = queries
    .delete(barriers)
    .where(and(named(queries, roomUid, barrierId), lt(barriers.generation, generation)))
    .returning({ participants, parties })
    .all();
  return removed.reduce((sum, row) => sum + bytesOf(row), 0);
}

/** Maximum per commit: each generation may have 64 KiB of names. */
const MAX_REMOVED = 256;

/** Removes some generations of a row set; returns false if there were none. Bounded by MAX_REMOVED. */
export function removeSome(queries: Queries, rows: RowsKey): boolean {
  const key = sql`room_uid, barrier_id, generation`;
  const some = sql`SELECT ${key} FROM ${barriers} WHERE room_uid = ${rows} LIMIT ${MAX_REMOVED}`;
  return queries.all(sql`DELETE FROM ${barriers} WHERE (${key}) IN (${some}) RETURNING generation`).length > 0;
}

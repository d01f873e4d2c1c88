/**
 * Branching of guests' idempotent calls with their room. A guest that resumes in another room, or is rolled back in its own, repeats a call
 * if it had not received the response: a call that was accepted before the cut is not executed a second time, and a call after the cut is
 * not considered executed.
 *
 * A room that moves to another host takes along all calls about it, of any caller, and the call that created it.
 *
 * The owner of a call is the guest's sandbox_id, which differs in another room, as the path may. Work without a response keeps its name, by
 * which its effects are recognized. Not taken are
 *
 *     calls about the sandbox itself      ports and tokens belong to another sandbox there: repeated calls create them again
 *     large responses, and the oldest     it stays known that the call was carried out; a repetition gets history_gone
 *     calls of keys                       callers outside of the room were not rolled back
 */
import { getTableColumns } from "drizzle-orm";
import type { OrgId } from "../../../shared/ids.ts";
import { at } from "../../core/clock.ts";
import { loopTime, ownerOf, Pieces, type Steps } from "../../core/loop/index.ts";
import { inCommits, type Rows } from "../../db/branch.ts";
import { type Queries, rawStatement, rawValues, type Values } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import type { IdempotencyStorageLimit } from "./idempotency-removal.ts";
import { type IdempotentCall, idempotency, KEY, workUlid } from "./idempotency-table.ts";

const OF_SANDBOX = /^\/v1\/rooms\/[^/]+\/sandboxes\//;
/** Limit of the answers of one guest. */
const MAX_BYTES = 8 * 1024 ** 2;
/** Calls that one step reads. */
const ROWS_AT_ONCE = 250;
/** The same with their replies. */
const REPLIES_AT_ONCE = 16;

/** A row's cells by their columns. */
type Cells = Record<string, Values[number]>;

/** By sandbox_id. */
export interface CallsState {
  calls: Record<string, Rows>;
}

/** The guests of a room that is filled or rolled back. */
export interface BranchedGuests {
  org_id: OrgId;
  /** The sandbox_id of each, by the sandbox_id at the time when its calls were taken. */
  sandboxIds: ReadonlyMap<string, string>;
  /** The path of such a call after the branch. */
  pathOf(path: string): string;
  pausedMs: number;
}

/** Rows are written in many commits. Until the last one their room, or the guests, are not there to make one of these calls. */
export interface CallsBranch {
  take(queries: Queries, sandboxIds: readonly string[]): Steps<CallsState>;
  /** Makes these calls all that guests have made which are not running. `isVital`: after a change that is not undone. */
  replace(state: CallsState, guests: BranchedGuests, isVital?: boolean): Promise<void>;
  /** Removes all calls of guests that were not created. */
  remove(sandboxIds: Iterable<string>): Promise<void>;
  /** All calls about a room without calls in progress. */
  takeRoom(queries: Queries, room: MovedRoom): Steps<Rows>;
  /** Makes these calls all about the room on another host. Rejects with the signal's reason. */
  putRoom(calls: Rows, room: MovedRoom, over: AbortSignal): Promise<void>;
}

export interface MovedRoom {
  org_id: OrgId;
  room_id: string;
  room_uid: string;
}

export function makeBranch(database: Database, space: IdempotencyStorageLimit): CallsBranch {
  /** `change` returns null for a call that is left out. */
  const write = async (
    given: Rows,
    change: (call: Cells) => Cells | null,
    how: { over?: AbortSignal; isVital?: boolean } = {},
  ) => {
    const { columns, rows } = named(given);
    await inCommits({ database, ...how }, rows, (queries) => {
      const upsert = prepareUpsert(queries);
      return (row) => {
        const call = change(cellsOf(columns, row));
        if (call) space.put(call as unknown as IdempotentCall, () => upsert(call));
      };
    });
  };
  const removeOf = async (sandboxId: string, isVital: boolean) => {
    while (await database.commit(() => space.removeSome(sandboxId), isVital));
  };
  /** Calls of an earlier stay of the room on this host: a guest that was rolled back since would get their answers. */
  const removeRoom = async (room: MovedRoom, over: AbortSignal) => {
    const pieces = new Pieces(loopTime, ownerOf(room.org_id), "idempotency.move", { signal: over });
    for (let after: Values | null = null; ; ) {
      await pieces.next();
      const keys: Values[] = keysOf(database.queries, room.org_id, after);
      const former = keys
        .map(([, ...key]) => key)
        .filter((key) => isOfRoom(pathIn(key), room) && pathIn(key) !== ROOMS);
      await inCommits({ database, over }, former, () => (key) => space.remove(key));
      after = keys.at(-1) ?? null;
      if (after === null) return;
    }
  };
  return {
    *take(queries, sandboxIds) {
      const calls: CallsState["calls"] = {};
      for (const sandboxId of sandboxIds) calls[sandboxId] = yield* takeCalls(queries, sandboxId);
      return { calls };
    },
    replace: async ({ calls }, { org_id, sandboxIds, pathOf, pausedMs }, isVital = false) => {
      for (const [was, key_id] of sandboxIds) {
        await removeOf(key_id, isVital);
        const change = (call: Cells): Cells => ({
          ...call,
          ...{ key_id, org_id, path: pathOf(String(call.path)) },
          created_at: at(Date.parse(String(call.created_at)) + pausedMs),
        });
        await write(calls[was] ?? NONE, change, { isVital });
      }
    },
    remove: async (sandboxIds) => {
      for (const sandboxId of sandboxIds) await removeOf(sandboxId, false);
    },
    takeRoom,
    putRoom: async (calls, room, over) => {
      await removeRoom(room, over);
      const isOfIt = (call: Cells) => call.org_id === room.org_id && isOfRoom(String(call.path), room);
      await write(calls, (call) => (isOfIt(call) ? call : null), { over });
    },
  };
}

const NONE: Rows = { columns: [], rows: [] };

/** Also the calls in a file of an older roomd: an object each. */
function named(given: Rows | Record<string, unknown>[]): Rows {
  if (!Array.isArray(given)) return given;
  const columns = Object.keys(given[0] ?? {});
  const cell = (value: unknown) => (typeof value === "object" && value !== null ? JSON.stringify(value) : value);
  return { columns, rows: given.map((call) => columns.map((column) => cell(call[column]) as Values[number])) };
}

const COLUMNS = Object.values(getTableColumns(idempotency)).map(({ name }) => name);
const KEYS = Object.keys(KEY);

/** For calls that another host may have sent: their sizes are those of the replies, and no call of another organization is replaced. */
function prepareUpsert(queries: Queries): (call: Cells) => void {
  const places = COLUMNS.map(() => "?").join();
  const set = COLUMNS.map((column) => `${column} = excluded.${column}`).join();
  const upsert = rawStatement(
    queries,
    `INSERT INTO idempotency (${COLUMNS.join()}) VALUES (${places}) ON CONFLICT (${KEYS.join()}) DO UPDATE SET ${set}
     WHERE idempotency.org_id = excluded.org_id`,
  );
  return (call) => {
    const blob = typeof call.reply_zstd === "string" ? Buffer.from(call.reply_zstd, "base64") : null;
    const reply_bytes = blob?.byteLength ?? 0;
    const kept_bytes = reply_bytes + Buffer.byteLength(String(call.reply ?? ""));
    const cells: Cells = { ...call, reply_zstd: blob as unknown as string | null, reply_bytes, kept_bytes };
    upsert(COLUMNS.map((column) => cells[column] ?? null));
  };
}

const ROOMS = "/v1/rooms";

/** Calls about a room, and the call that made it. */
function isOfRoom(path: string, { room_id }: MovedRoom): boolean {
  return path === ROOMS || path.startsWith(`${ROOMS}/${encodeURIComponent(room_id)}/`);
}

const pathIn = (key: Values): string => String(key[KEYS.indexOf("path")]);

/** Some calls of the organization: created_at and key of each, after those of an earlier one. */
function keysOf(queries: Queries, orgId: OrgId, after: Values | null): Values[] {
  const order = `created_at, ${KEYS.join()}`;
  const following = after === null ? "" : `AND (${order}) > (?, ?, ?, ?, ?)`;
  const text = `SELECT ${order} FROM idempotency WHERE org_id = ? ${following} ORDER BY ${order} LIMIT ${ROWS_AT_ONCE}`;
  return rawValues(queries, text)([orgId, ...(after ?? [])]);
}

/** Also reads the keys of other calls of the organization. */
function* takeRoom(queries: Queries, room: MovedRoom): Steps<Rows> {
  const read = readerOf(queries, COLUMNS);
  const move = `${ROOMS}/${encodeURIComponent(room.room_id)}/move`;
  const rows: Values[] = [];
  let count = 0;
  let keys = keysOf(queries, room.org_id, null);
  for (; keys.length > 0; keys = keysOf(queries, room.org_id, keys.at(-1) ?? null)) {
    for (const [created_at, ...key] of keys) {
      const path = pathIn(key);
      if (!isOfRoom(path, room) || path === move) continue;
      if (++count % REPLIES_AT_ONCE === 0) yield;
      const call = read(key);
      if (path === ROOMS && !String(call.reply).includes(room.room_uid)) continue;
      const zstd = call.reply_zstd as unknown as Uint8Array | null;
      const reply_zstd = zstd && Buffer.from(zstd).toString("base64");
      const work_ulid = call.status ? call.work_ulid : workOf(call, String(created_at));
      rows.push(Object.values({ ...call, reply_zstd, work_ulid } as Cells));
    }
    yield;
  }
  return { columns: COLUMNS, rows };
}

const workOf = (call: Cells, createdAt: string) =>
  call.work_ulid ?? workUlid(call as unknown as IdempotentCall, createdAt);

function readerOf(queries: Queries, columns: readonly string[]): (key: Values) => Cells {
  const read = rawValues(queries, `SELECT ${columns.join()} FROM idempotency WHERE ${KEYS.join(" = ? AND ")} = ?`);
  return (key) => cellsOf(columns, read(key)[0] ?? []);
}

const cellsOf = (columns: readonly string[], row: Values): Cells =>
  Object.fromEntries(columns.map((column, place) => [column, row[place] ?? null]));

const TAKEN = ["method", "path", "idempotency_key", "body_sha256", "status", "created_at", "begun", "work_ulid"];

function* takeCalls(queries: Queries, sandboxId: string): Steps<Rows> {
  const order = "method, path, idempotency_key";
  const page = (after: string) =>
    rawValues(
      queries,
      `SELECT ${TAKEN.join()}, octet_length(reply) FROM idempotency WHERE key_id = ? ${after} ORDER BY ${order} LIMIT ${ROWS_AT_ONCE}`,
    );
  const next = page(`AND (${order}) > (?, ?, ?)`);
  const calls: { call: Cells; bytes: number }[] = [];
  const bytesAt = new Map<number, number>();
  for (
    let read = page("")([sandboxId]);
    read.length > 0;
    read = next([sandboxId, ...(read.at(-1)?.slice(0, 3) ?? [])])
  ) {
    for (const row of read) {
      const call = cellsOf(TAKEN, row);
      if (OF_SANDBOX.test(String(call.path))) continue;
      const bytes = Number(row[TAKEN.length] ?? 0);
      const moment = Date.parse(String(call.created_at));
      calls.push({ call, bytes });
      bytesAt.set(moment, (bytesAt.get(moment) ?? 0) + bytes);
    }
    yield;
  }
  const since = newestWithin(bytesAt, MAX_BYTES);
  const reply = readerOf(queries, ["reply"]);
  const rows: Values[] = [];
  for (const [place, { call, bytes }] of calls.entries()) {
    if (place % REPLIES_AT_ONCE === 0) yield;
    const created_at = String(call.created_at);
    const { method = null, path = null, idempotency_key = null } = call;
    const isKept = bytes > 0 && Date.parse(created_at) >= since;
    const kept = isKept ? reply([sandboxId, method, path, idempotency_key]) : { reply: null };
    // The name derives from the caller and the time: for another guest it would differ.
    const work_ulid = call.status ? null : workOf({ ...call, key_id: sandboxId }, created_at);
    rows.push(Object.values({ ...call, work_ulid, ...kept } as Cells));
  }
  return { columns: [...TAKEN, "reply"], rows };
}

/** The moment from which on the sizes sum to at most this many bytes. */
function newestWithin(bytesAt: ReadonlyMap<number, number>, most: number): number {
  let left = most;
  for (const moment of Float64Array.from(bytesAt.keys()).sort().reverse()) {
    left -= bytesAt.get(moment) ?? 0;
    if (left < 0) return moment + 1;
  }
  return 0;
}

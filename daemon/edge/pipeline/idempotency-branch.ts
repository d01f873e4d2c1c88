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
import { and, eq, gte, isNotNull, lt, or, type SQL, sql } from "drizzle-orm";
import type { OrgId } from "../../../shared/ids.ts";
import { at } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import type { IdempotencyStorageLimit } from "./idempotency-removal.ts";
import { idempotency, KEY, workUlid } from "./idempotency-table.ts";

const OF_SANDBOX = /^\/v1\/rooms\/[^/]+\/sandboxes\//;
/** Limit of the answers of one guest. */
const MAX_BYTES = 8 * 1024 ** 2;

type Row = typeof idempotency.$inferSelect;
type BranchedCall = Omit<Row, "key_id" | "org_id" | "reply_zstd" | "reply_bytes" | "kept_bytes">;

/** By sandbox_id. */
export interface CallsState {
  calls: Record<string, BranchedCall[]>;
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

export interface CallsBranch {
  take(queries: Queries, sandboxIds: readonly string[]): CallsState;
  /** Adds the calls to guests that have made none. */
  put(queries: Queries, state: CallsState, guests: BranchedGuests): void;
  /** Removes the calls that these guests have made since. */
  replace(queries: Queries, state: CallsState, guests: BranchedGuests): void;
  /** All calls about a room without calls in progress. */
  takeRoom(queries: Queries, room: MovedRoom): MovedCall[];
  /** Stores the same calls on another host. */
  putRoom(queries: Queries, calls: readonly MovedCall[], room: MovedRoom): void;
}

export interface MovedRoom {
  org_id: OrgId;
  room_id: string;
  room_uid: string;
}

/** A row in its JSON form. */
export type MovedCall = Omit<Row, "reply_zstd"> & { reply_zstd: string | null };

export function makeBranch(space: IdempotencyStorageLimit): CallsBranch {
  const put: CallsBranch["put"] = (queries, state, { org_id, sandboxIds, pathOf, pausedMs }) =>
    space.rewrite([...sandboxIds.values()], () => {
      for (const [was, key_id] of sandboxIds) {
        for (const call of state.calls[was] ?? []) {
          const created_at = at(Date.parse(call.created_at) + pausedMs);
          const kept_bytes = Buffer.byteLength(call.reply ?? "");
          queries
            .insert(idempotency)
            .values({ ...call, key_id, org_id, path: pathOf(call.path), created_at, kept_bytes })
            .run();
        }
      }
    });
  return {
    take: (queries, sandboxIds) => ({
      calls: Object.fromEntries(sandboxIds.map((sandboxId) => [sandboxId, takeCalls(queries, sandboxId)])),
    }),
    put,
    replace: (queries, state, guests) => {
      const present = [...guests.sandboxIds.values()];
      space.rewrite(present, () => {
        for (const key_id of present) queries.delete(idempotency).where(eq(idempotency.key_id, key_id)).run();
      });
      put(queries, state, guests);
    },
    takeRoom: (queries, room) => {
      const rows = queries.select().from(idempotency).where(callsAbout(room)).all();
      return rows.map((row) => ({
        ...row,
        reply_zstd: row.reply_zstd?.toString("base64") ?? null,
        work_ulid: row.status ? row.work_ulid : (row.work_ulid ?? workUlid(row, row.created_at)),
      }));
    },
    putRoom: (queries, calls, room) => {
      const about = calls.filter((call) => isAbout(call, room));
      space.rewrite([...new Set(about.map(({ key_id }) => key_id))], () => {
        for (const { reply_zstd, ...call } of about) {
          const row = { ...call, reply_zstd: reply_zstd === null ? null : Buffer.from(reply_zstd, "base64") };
          // The row may remain from an earlier stay of the room on this host.
          queries
            .insert(idempotency)
            .values(row)
            .onConflictDoUpdate({ target: Object.values(KEY), set: row })
            .run();
        }
      });
    },
  };
}

const ROOMS = "/v1/rooms";

/** Calls about a room, including the call that made it: its answer contains the room's uid. */
function callsAbout({ org_id, room_id, room_uid }: MovedRoom): SQL | undefined {
  const { path, reply, org_id: orgColumn } = idempotency;
  const begin = `${ROOMS}/${encodeURIComponent(room_id)}`;
  const ofRoom = and(gte(path, `${begin}/`), lt(path, `${begin}0`), sql`${path} <> ${`${begin}/move`}`);
  const made = and(eq(path, ROOMS), isNotNull(reply), sql`instr(${reply}, ${room_uid}) > 0`);
  return and(eq(orgColumn, org_id), or(ofRoom, made));
}

function isAbout({ path, org_id }: MovedCall, room: MovedRoom): boolean {
  return org_id === room.org_id && (path === ROOMS || path.startsWith(`${ROOMS}/${encodeURIComponent(room.room_id)}/`));
}

function takeCalls(queries: Queries, sandboxId: string): BranchedCall[] {
  const { key_id, method, path, idempotency_key, body_sha256, status, created_at, begun, work_ulid } = idempotency;
  const newest = sql`sum(ifnull(octet_length(${idempotency.reply}), 0)) OVER (ORDER BY ${created_at} DESC, ${path}, ${idempotency_key})`;
  const reply: SQL<string | null> = sql`CASE WHEN ${newest} <= ${MAX_BYTES} THEN ${idempotency.reply} END`;
  const rows = queries
    .select({ method, path, idempotency_key, body_sha256, status, reply, created_at, begun, work_ulid })
    .from(idempotency)
    .where(eq(key_id, sandboxId))
    .all();
  const taken = rows.filter((row) => !OF_SANDBOX.test(row.path));
  return taken.map((row) => ({
    ...row,
    // The name derives from the caller and the time: for another guest it would differ.
    work_ulid: row.status ? null : (row.work_ulid ?? workUlid({ ...row, key_id: sandboxId }, row.created_at)),
  }));
}

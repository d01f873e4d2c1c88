/** SQL of rooms. */
import {
  and,
  asc,
  count,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNotNull,
  lt,
  min,
  ne,
  not,
  or,
  sql,
} from "drizzle-orm";
import type { RoomState } from "../../../shared/api/rooms.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { MisplacedRoom, OrgUse } from "../../cluster/directory.ts";
import { placements } from "../../cluster/table.ts";
import type { Steps } from "../../core/loop/index.ts";
import { preparedBy, type Queries } from "../../db/client.ts";
import { RowCache } from "../../db/row-cache.ts";
import { type NewRoomRow, type RoomRow, rooms } from "./table.ts";

export function insertRoom(queries: Queries, row: NewRoomRow): void {
  known.forget(queries);
  queries.insert(rooms).values(row).run();
}

export function updateRoom(queries: Queries, roomUid: RoomUid, change: Partial<RoomRow>): void {
  known.forget(queries);
  queries.update(rooms).set(change).where(eq(rooms.room_uid, roomUid)).run();
}

/** Sets this host as the owner of all rooms, ended ones too; returns how many had another owner. */
export function claimRooms(queries: Queries, hostId: string): number {
  known.forget(queries);
  const claimed = queries.update(rooms).set({ host_id: hostId }).where(ne(rooms.host_id, hostId));
  return claimed.returning({ room_uid: rooms.room_uid }).all().length;
}

const byUid = preparedBy((queries) =>
  queries
    .select()
    .from(rooms)
    .where(eq(rooms.room_uid, sql.placeholder("room_uid")))
    .prepare(),
);

export function getRoom(queries: Queries, roomUid: RoomUid): RoomRow | undefined {
  return byUid(queries).get({ room_uid: roomUid });
}

/** The same, outside of transactions. */
export function rememberedRoom(queries: Queries, roomUid: RoomUid): RoomRow | undefined {
  return known.get(queries, roomUid, () => getRoom(queries, roomUid));
}

/** An organization's live room with this uid. */
export function liveRoomOf(queries: Queries, orgId: OrgId, roomUid: RoomUid): RoomRow | undefined {
  const isIt = and(eq(rooms.room_uid, roomUid), eq(rooms.org_id, orgId), ne(rooms.state, "destroyed"));
  return queries.select().from(rooms).where(isIt).get();
}

/** Columns of a room that work in it needs. */
export type RoomPlace = Pick<
  RoomRow,
  "room_uid" | "room_id" | "org_id" | "state" | "drive_limit_bytes" | "drive_until_at"
> &
  Partial<Pick<RoomRow, "branching">>;

const known = new RowCache<RoomRow>();

/** Finds an organization's room by name; outside of transactions. */
export function prepareRoomLookup(queries: Queries): (orgId: OrgId, roomId: string) => RoomRow | undefined {
  const isMeant = and(
    eq(rooms.org_id, sql.placeholder("org_id")),
    eq(rooms.room_id, sql.placeholder("room_id")),
    ne(rooms.state, "destroyed"),
  );
  const statement = queries.select().from(rooms).where(isMeant).prepare();
  return (org_id, room_id) => known.get(queries, `${org_id} ${room_id}`, () => statement.get({ org_id, room_id }));
}

export function listRooms(
  queries: Queries,
  filter: {
    org_id: OrgId;
    /** Restricts the list to these, for a key that is bound to them. */
    room_ids: readonly string[] | null;
    state?: RoomState | undefined;
    label?: string | undefined;
    order?: "asc" | "desc" | undefined;
    after: string | null;
    limit: number;
  },
): RoomRow[] {
  const [follows, by] = filter.order === "desc" ? [lt, desc] : [gt, asc];
  const [name = "", ...rest] = filter.label?.split(":") ?? [];
  return queries
    .select()
    .from(rooms)
    .where(
      and(
        eq(rooms.org_id, filter.org_id),
        filter.room_ids === null ? undefined : inArray(rooms.room_id, [...filter.room_ids]),
        filter.state === undefined ? ne(rooms.state, "destroyed") : eq(rooms.state, filter.state),
        filter.label === undefined
          ? undefined
          : sql`EXISTS (SELECT 1 FROM json_each(${rooms.labels}) WHERE key = ${name} AND value = ${rest.join(":")})`,
        filter.after === null ? undefined : follows(rooms.room_uid, filter.after as RoomUid),
      ),
    )
    .orderBy(by(rooms.room_uid))
    .limit(filter.limit)
    .all();
}

/** An organization's rooms that are not destroyed; same text as the condition of the partial index. */
const isLiveOf = (orgId: OrgId) => and(eq(rooms.org_id, orgId), sql`${rooms.state} <> 'destroyed'`);

export function countRooms(queries: Queries, orgId: OrgId): number {
  return queries.select({ live: count() }).from(rooms).where(isLiveOf(orgId)).get()?.live ?? 0;
}

/** All rooms on this host that are not destroyed. */
export function countAllRooms(queries: Queries): number {
  return queries.select({ live: count() }).from(rooms).where(sql`${rooms.state} <> 'destroyed'`).get()?.live ?? 0;
}

/** Rooms of a page: under one millisecond. */
const PAGE_ROWS = 100;

/** An organization's live rooms, by name, in pages that are read as they are consumed: rooms may change between two pages. */
export function* orgRooms(queries: Queries, orgId: OrgId): Generator<RoomRow[]> {
  let page: RoomRow[];
  let after = "";
  do {
    const isNext = and(isLiveOf(orgId), gt(rooms.room_id, after));
    page = queries.select().from(rooms).where(isNext).orderBy(rooms.room_id).limit(PAGE_ROWS).all();
    after = page.at(-1)?.room_id ?? after;
    yield page;
  } while (page.length === PAGE_ROWS);
}

/** Ids of an organization's live rooms. */
export function liveRoomUids(queries: Queries, orgId: OrgId): RoomUid[] {
  const found = queries.select({ room_uid: rooms.room_uid }).from(rooms).where(isLiveOf(orgId)).all();
  return found.map(({ room_uid }) => room_uid);
}

/** An organization's destroyed rooms with kept drives, in the same way. */
export function* keptRooms(queries: Queries, orgId: OrgId): Generator<RoomRow[]> {
  const isKept = and(eq(rooms.org_id, orgId), eq(rooms.state, "destroyed"), isNotNull(rooms.drive_until_at));
  let page: RoomRow[];
  let after = "" as RoomUid;
  do {
    const isNext = and(isKept, gt(rooms.room_uid, after));
    page = queries.select().from(rooms).where(isNext).orderBy(rooms.room_uid).limit(PAGE_ROWS).all();
    after = page.at(-1)?.room_uid ?? after;
    yield page;
  } while (page.length === PAGE_ROWS);
}

/** Rooms that are not destroyed, of every organization. */
export function liveRooms(queries: Queries): RoomRow[] {
  return queries
    .select()
    .from(rooms)
    .where(inArray(rooms.state, ["active", "destroying"]))
    .all();
}

/** Ends of rooms that one reconciliation resumes. */
const MAX_RESUMED = 256;

/** Some rooms in destruction: by the index of live rooms, of which there may be thousands, one search for each organization. */
export function destroyingRooms(queries: Queries): RoomRow[] {
  const isDestroying = sql`${rooms.org_id} IN (SELECT org_id FROM orgs) AND ${rooms.state} <> 'destroyed'
    AND ${rooms.state} = 'destroying'`;
  return queries.select().from(rooms).where(isDestroying).limit(MAX_RESUMED).all();
}

/** Rooms that are compared with the cluster directory in one step: about one millisecond. */
const COMPARED = 500;

/** All rooms that `misplacedRooms` and `placedWithoutRoom` find; the state may change between two steps. */
export function* unsettledRooms(queries: Queries, hostId: string): Steps<RoomUid[]> {
  const found: RoomUid[] = [];
  let live: Pick<RoomRow, "room_uid" | "org_id" | "room_id">[];
  let [org_id, room_id] = ["", ""];
  do {
    live = queries.all(sql`
      SELECT room_uid, org_id, room_id FROM rooms WHERE state <> 'destroyed' AND (org_id, room_id) > (${org_id}, ${room_id})
        ORDER BY org_id, room_id LIMIT ${COMPARED}`);
    const misplaced = misplacedRooms(
      queries,
      hostId,
      live.map(({ room_uid }) => room_uid),
    );
    for (const room of misplaced) found.push(room.room_uid);
    ({ org_id, room_id } = live.at(-1) ?? { org_id, room_id });
    yield;
  } while (live.length === COMPARED);
  let placed: RoomUid[];
  let after = "";
  do {
    placed = queries
      .all<{ room_uid: RoomUid }>(sql`
        SELECT room_uid FROM placements WHERE host_id = ${hostId} AND room_uid > ${after} ORDER BY room_uid LIMIT ${COMPARED}`)
      .map(({ room_uid }) => room_uid);
    found.push(...placedWithoutRoom(queries, hostId, placed));
    after = placed.at(-1) ?? after;
    yield;
  } while (placed.length === COMPARED);
  return found;
}

/** Those of these rooms that are live, and that the cluster directory has not placed on this host under their name and epoch. */
export function misplacedRooms(queries: Queries, hostId: string, of: readonly RoomUid[]): MisplacedRoom[] {
  const found = queries.all<Record<string, string | number | null>>(sql`
    SELECT rooms.room_uid, rooms.org_id, rooms.room_id, rooms.labels, rooms.created_at, rooms.epoch,
      placed.host_id AS placed_on, placed.epoch AS placed_epoch, placed.contested_by,
      named.room_uid AS named_uid, named.host_id AS named_on
    FROM json_each(${JSON.stringify(of)}) AS wanted CROSS JOIN rooms ON rooms.room_uid = wanted.value
    LEFT JOIN placements AS placed ON placed.room_uid = rooms.room_uid
    LEFT JOIN placements AS named ON named.org_id = rooms.org_id AND named.room_id = rooms.room_id
    WHERE rooms.state <> 'destroyed' AND (placed.host_id IS NOT ${hostId} OR placed.epoch < rooms.epoch
      OR placed.org_id <> rooms.org_id OR placed.room_id <> rooms.room_id)`);
  return found.map(({ placed_on, placed_epoch, contested_by, named_uid, named_on, labels, ...room }) => ({
    ...(room as unknown as Omit<MisplacedRoom, "labels" | "owner" | "named">),
    labels: JSON.parse(String(labels)) as Record<string, string>,
    owner:
      placed_on === null
        ? null
        : {
            host_id: String(placed_on),
            epoch: Number(placed_epoch),
            contested_by: contested_by === null ? null : String(contested_by),
          },
    named: named_uid === null ? null : { room_uid: named_uid as RoomUid, host_id: String(named_on) },
  }));
}

/** Active rooms here that are not moving, and that the cluster directory places on another host too, in the same epoch or a newer one. */
export function roomsOfOthers(queries: Queries, hostId: string, limit: number): RoomRow[] {
  const isOthers = or(
    and(ne(placements.host_id, hostId), gte(placements.epoch, rooms.epoch)),
    and(isNotNull(placements.contested_by), eq(placements.epoch, rooms.epoch)),
  );
  const isStaying = sql`json_extract(${rooms.branching}, '$.kind') IS NOT 'move'`;
  return (
    queries
      .select(getTableColumns(rooms))
      .from(rooms)
      .innerJoin(placements, eq(placements.room_uid, rooms.room_uid))
      // The first condition matches a partial index.
      .where(and(sql`${rooms.state} <> 'destroyed'`, eq(rooms.state, "active"), isStaying, isOthers))
      .limit(limit)
      .all()
  );
}

/** Those of these rooms that the cluster directory places on this host, and that are not live here. */
export function placedWithoutRoom(queries: Queries, hostId: string, of: readonly RoomUid[]): RoomUid[] {
  const found = queries.all<{ room_uid: RoomUid }>(sql`
    SELECT room_uid FROM json_each(${JSON.stringify(of)}) AS wanted CROSS JOIN placements ON room_uid = wanted.value
      WHERE host_id = ${hostId} AND NOT EXISTS
      (SELECT 1 FROM rooms WHERE rooms.room_uid = placements.room_uid AND rooms.state <> 'destroyed')`);
  return found.map(({ room_uid }) => room_uid);
}

/** Limit of moving rooms per query; rooms beyond it are counted by their rows until they have moved. */
const MAX_MOVING = 1_000;

interface MovedUse {
  org_id: OrgId;
  use: OrgUse;
}

/** Live rooms here that are moving, and that the cluster directory places on another host; of one organization, or of all. */
export function givenRooms(
  queries: Queries,
  hostId: string,
  orgId: OrgId | null,
): Pick<RoomRow, "org_id" | "room_uid">[] {
  const { org_id, room_uid, branching, state } = rooms;
  const isGiven = and(isNotNull(branching), ne(state, "destroyed"), ne(placements.host_id, hostId));
  return queries
    .select({ org_id, room_uid })
    .from(rooms)
    .innerJoin(placements, eq(placements.room_uid, room_uid))
    .where(and(orgId === null ? undefined : eq(org_id, orgId), isGiven))
    .limit(MAX_MOVING)
    .all();
}

const isLiveHere = sql`EXISTS (SELECT 1 FROM rooms WHERE rooms.room_uid = placements.room_uid AND rooms.state <> 'destroyed')`;

/** Usage of rooms that are arriving on this host and have no rows here yet; of one organization, or of all. */
export function comingUse(queries: Queries, hostId: string, orgId: OrgId | null): MovedUse[] {
  const { org_id, moved_use, host_id } = placements;
  const isComing = and(eq(host_id, hostId), isNotNull(moved_use), not(isLiveHere));
  const found = queries
    .select({ org_id, use: moved_use })
    .from(placements)
    .where(and(orgId === null ? undefined : eq(org_id, orgId), isComing))
    .limit(MAX_MOVING)
    .all();
  return found.flatMap(({ org_id, use }) => (use === null ? [] : [{ org_id, use }]));
}

/** Rooms that arrived on this host with a recorded use, and have their rows here. */
export function arrivedRooms(queries: Queries, hostId: string): RoomUid[] {
  const { room_uid, moved_use, host_id } = placements;
  const hasArrived = and(eq(host_id, hostId), isNotNull(moved_use), isLiveHere);
  const found = queries.select({ room_uid }).from(placements).where(hasArrived).limit(MAX_MOVING).all();
  return found.map((each) => each.room_uid);
}

/** Number of live rooms of each organization on this host. */
export function countRoomsByOrg(queries: Queries): Map<OrgId, number> {
  const counts = queries
    .select({ org_id: rooms.org_id, live: count() })
    .from(rooms)
    .where(sql`${rooms.state} <> 'destroyed'`)
    .groupBy(rooms.org_id)
    .all();
  return new Map(counts.map(({ org_id, live }) => [org_id, live]));
}

/** Active rooms with an unfinished restore, start or move. */
export function branchingRooms(queries: Queries): RoomRow[] {
  const isBranching = and(eq(rooms.state, "active"), isNotNull(rooms.branching));
  return queries.select().from(rooms).where(isBranching).all();
}

/** Rooms that another host may already own. */
export function leavingRooms(queries: Queries): ReadonlySet<string> {
  const moving = branchingRooms(queries).filter(({ branching }) => branching?.kind === "move" && branching.claiming);
  return new Set(moving.map(({ room_uid }) => room_uid));
}

/** Ended organizations that still have rooms or retained drives here. */
export function orgsLeftBehind(queries: Queries): OrgId[] {
  const isThere = or(ne(rooms.state, "destroyed"), isNotNull(rooms.drive_until_at));
  const hasEnded = sql`${rooms.org_id} IN (SELECT org_id FROM orgs WHERE ended_at IS NOT NULL)`;
  const found = queries.selectDistinct({ org_id: rooms.org_id }).from(rooms).where(and(isThere, hasEnded)).all();
  return found.map(({ org_id }) => org_id);
}

/** Destroyed rooms with an expired drive retention. */
export function drivesDue(queries: Queries, moment: string): RoomRow[] {
  return queries
    .select()
    .from(rooms)
    .where(and(eq(rooms.state, "destroyed"), isNotNull(rooms.drive_until_at), lt(rooms.drive_until_at, moment)))
    .all();
}

/** The earliest end of a drive's retention from a moment on; null if absent. */
export function nextDriveDue(queries: Queries, moment: string): string | null {
  const next = queries
    .select({ at: min(rooms.drive_until_at) })
    .from(rooms)
    .where(and(isNotNull(rooms.drive_until_at), gte(rooms.drive_until_at, moment)));
  return next.get()?.at ?? null;
}

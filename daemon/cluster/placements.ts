/** SQL of the shared rows about rooms: the host of each room, and organizations' use on each host. */
import { and, eq, gt, ne, sql, sum } from "drizzle-orm";
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import type { Queries } from "../db/client.ts";
import { RowCache } from "../db/row-cache.ts";
import type { HostUse, OrgUse, Owner } from "./directory.ts";
import { type HostRow, hosts, type NewPlacementRow, orgUse, type PlacementRow, placements } from "./table.ts";

export function insertPlacement(queries: Queries, row: NewPlacementRow): void {
  queries.insert(placements).values(row).run();
}

export function deletePlacement(queries: Queries, roomUid: RoomUid): void {
  queries.delete(placements).where(eq(placements.room_uid, roomUid)).run();
}

export function placementOf(queries: Queries, orgId: OrgId, roomId: string): PlacementRow | undefined {
  const isIt = and(eq(placements.org_id, orgId), eq(placements.room_id, roomId));
  return queries.select().from(placements).where(isIt).get();
}

/** A prepared version of `placementOf`, for calls that are forwarded to another host. */
export function preparePlacementLookup(queries: Queries): (orgId: OrgId, roomId: string) => PlacementRow | undefined {
  const isIt = and(
    eq(placements.org_id, sql.placeholder("org_id")),
    eq(placements.room_id, sql.placeholder("room_id")),
  );
  const statement = queries.select().from(placements).where(isIt).prepare();
  return (org_id, room_id) => statement.get({ org_id, room_id });
}

export function placementOfRoom(queries: Queries, roomUid: RoomUid): PlacementRow | undefined {
  return queries.select().from(placements).where(eq(placements.room_uid, roomUid)).get();
}

const owners = new RowCache<Owner>();

/** The owner of a room, cached until the copy changes; outside of transactions. */
export function prepareOwnerLookup(queries: Queries): (roomUid: RoomUid) => Owner | null {
  const { host_id, epoch, contested_by } = placements;
  const statement = queries
    .select({ host_id, epoch, contested_by })
    .from(placements)
    .where(eq(placements.room_uid, sql.placeholder("room_uid")))
    .prepare();
  return (room_uid) => owners.get(queries, room_uid, () => statement.get({ room_uid })) ?? null;
}

/**
 * Changes the host or the epoch of a room; no other host has the room in the new epoch. `moved_use`: the room's use, if the host does not
 * have its rows yet.
 */
export function movePlacement(
  queries: Queries,
  roomUid: RoomUid,
  { host_id, epoch }: Owner,
  moved_use: OrgUse | null = null,
): void {
  const owner = { host_id, epoch, contested_by: null, moved_use };
  queries.update(placements).set(owner).where(eq(placements.room_uid, roomUid)).run();
}

/** Notes that another host has the room in the same epoch. */
export function contestPlacement(queries: Queries, roomUid: RoomUid, contested_by: string): void {
  queries.update(placements).set({ contested_by }).where(eq(placements.room_uid, roomUid)).run();
}

/** Ends the contests of a host that is removed. */
export function endContestsOf(queries: Queries, hostId: string): void {
  queries.update(placements).set({ contested_by: null }).where(eq(placements.contested_by, hostId)).run();
}

export function placementsOn(queries: Queries, hostId: string): PlacementRow[] {
  return queries.select().from(placements).where(eq(placements.host_id, hostId)).all();
}

/** Placements of an organization that one step reads: a millisecond. */
const PAGE = 250;

/** An organization's rooms on a host, in pages; changes between two pages may be missing. */
export function* orgPlacementsOn(queries: Queries, orgId: OrgId, hostId: string): Generator<PlacementRow[]> {
  const { org_id, room_id } = placements;
  let page: PlacementRow[];
  let after = "";
  do {
    const isNext = and(eq(org_id, orgId), gt(room_id, after));
    page = queries.select().from(placements).where(isNext).orderBy(room_id).limit(PAGE).all();
    after = page.at(-1)?.room_id ?? after;
    yield page.filter(({ host_id }) => host_id === hostId);
  } while (page.length === PAGE);
}

export function listHosts(queries: Queries): HostRow[] {
  return queries.select().from(hosts).all();
}

export function getHost(queries: Queries, hostId: string): HostRow | undefined {
  return queries.select().from(hosts).where(eq(hosts.host_id, hostId)).get();
}

export function prepareHostLookup(queries: Queries): (hostId: string) => HostRow | undefined {
  const isIt = eq(hosts.host_id, sql.placeholder("host_id"));
  const statement = queries.select().from(hosts).where(isIt).prepare();
  return (host_id) => statement.get({ host_id });
}

export function putHost(queries: Queries, row: HostRow): void {
  queries.insert(hosts).values(row).onConflictDoUpdate({ target: hosts.host_id, set: row }).run();
}

export function setUse(queries: Queries, org_id: OrgId, host_id: string, use: HostUse): void {
  const row = { org_id, host_id, ...use };
  queries
    .insert(orgUse)
    .values(row)
    .onConflictDoUpdate({ target: [orgUse.org_id, orgUse.host_id], set: row })
    .run();
}

export function usesOf(queries: Queries, hostId: string) {
  return queries.select().from(orgUse).where(eq(orgUse.host_id, hostId)).all();
}

/** An organization's use of a host, by that host's last report. */
export function useOn(queries: Queries, orgId: OrgId, hostId: string): HostUse {
  const isIt = and(eq(orgUse.org_id, orgId), eq(orgUse.host_id, hostId));
  const found = queries.select().from(orgUse).where(isIt).get();
  if (!found) return { rooms: 0, sandboxes: 0, memory_mib: 0, disk_gib: 0, used_micro: 0 };
  const { org_id: _, host_id: __, ...use } = found;
  return use;
}

/** Clears the use of an arrived room: its host has the room's rows. */
export function endMovedUse(queries: Queries, roomUid: RoomUid): void {
  queries.update(placements).set({ moved_use: null }).where(eq(placements.room_uid, roomUid)).run();
}

/** An organization's credits used on all hosts, by their last reports, in millionths of one. */
export function usedOnAll(queries: Queries, orgId: OrgId): number {
  const used = sum(orgUse.used_micro).mapWith(Number);
  return queries.select({ used }).from(orgUse).where(eq(orgUse.org_id, orgId)).get()?.used ?? 0;
}

/** Memory promised to a room of an organization that has no sandboxes yet. */
const USUAL_MIB = 512;

/** Average memory promised to the sandboxes of one room of the organization. */
export function usualRoomMib(queries: Queries, orgId: OrgId): number {
  const total = { rooms: sum(orgUse.rooms).mapWith(Number), memory_mib: sum(orgUse.memory_mib).mapWith(Number) };
  const used = queries.select(total).from(orgUse).where(eq(orgUse.org_id, orgId)).get();
  return used?.rooms && used.memory_mib ? used.memory_mib / used.rooms : USUAL_MIB;
}

/** Whether the organization has a room on any host. */
export function hasPlacements(queries: Queries, orgId: OrgId): boolean {
  return queries.select().from(placements).where(eq(placements.org_id, orgId)).limit(1).get() !== undefined;
}

/** An organization's use of all hosts but one. */
export function useBut(queries: Queries, orgId: OrgId, hostId: string): HostUse {
  const found = queries
    .select({
      rooms: sum(orgUse.rooms).mapWith(Number),
      sandboxes: sum(orgUse.sandboxes).mapWith(Number),
      memory_mib: sum(orgUse.memory_mib).mapWith(Number),
      disk_gib: sum(orgUse.disk_gib).mapWith(Number),
      used_micro: sum(orgUse.used_micro).mapWith(Number),
    })
    .from(orgUse)
    .where(and(eq(orgUse.org_id, orgId), ne(orgUse.host_id, hostId)))
    .get();
  return {
    rooms: found?.rooms ?? 0,
    sandboxes: found?.sandboxes ?? 0,
    memory_mib: found?.memory_mib ?? 0,
    disk_gib: found?.disk_gib ?? 0,
    used_micro: found?.used_micro ?? 0,
  };
}

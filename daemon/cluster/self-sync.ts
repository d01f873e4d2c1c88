/**
 * This host's rows in the shared directory: its addresses, rooms, and organizations' use. Compares them with the actual state here, and
 * corrects them: after a crash between two steps, after rooms have ended, after a new configuration.
 *
 *   compare      all of them, in short steps between which anything may change: the rows that may be wrong
 *   differences  of some of these, in one step: what a change of shared rows corrects
 */
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import { now } from "../core/clock.ts";
import type { Steps } from "../core/loop/index.ts";
import type { Queries } from "../db/client.ts";
import type { HostUse, MisplacedRoom, PlacedRoom } from "./directory.ts";
import type { Load } from "./leases.ts";
import {
  contestPlacement,
  deletePlacement,
  endMovedUse,
  getHost,
  insertPlacement,
  movePlacement,
  putHost,
  setUse,
  useOn,
  usesOf,
} from "./placements.ts";
import type { HostRow } from "./table.ts";

/** Sources of the actual state, after the host is composed. */
export interface Sources {
  certificate: string;
  load(): Load;
  /** Current use of an organization on this host; placements decide for moving rooms. */
  used(queries: Queries, orgId: OrgId): HostUse;
  /** The same for all organizations; absent: the organization has neither rooms nor sandboxes here, and has used no credits. */
  allUsed(queries: Queries): ReadonlyMap<OrgId, HostUse>;
  /** Rooms of this host whose placement is not theirs, and placements here without a room; some rooms are compared in each step. */
  unsettled(queries: Queries, hostId: string): Steps<RoomUid[]>;
  /** Those of these rooms that are live here, and that the cluster directory has not placed here under their name and epoch. */
  misplaced(queries: Queries, hostId: string, rooms: readonly RoomUid[]): MisplacedRoom[];
  /** Those of these rooms that the cluster directory has placed here, but that this host does not have. */
  placedWithoutRoom(queries: Queries, hostId: string, rooms: readonly RoomUid[]): RoomUid[];
  /** Rooms that moved to this host with a use in their placement, and have their rows here. */
  arrived(queries: Queries, hostId: string): RoomUid[];
  /** Rooms that are moving here from other hosts, and have no rows here yet. */
  arriving(): ReadonlySet<string>;
  /** Rooms that may already be another host's: if the cluster directory has no host for them, they have ended there. */
  leaving(): ReadonlySet<string>;
}

const NOTHING_ARRIVES: ReadonlySet<string> = new Set();

export type Self = Pick<HostRow, "host_id" | "address" | "url" | "labels">;

/** Rooms and organizations whose rows in the cluster directory may differ from the state of this host. */
export interface Suspects {
  rooms: RoomUid[];
  orgs: OrgId[];
}

/** All of them; none on a removed host. */
export function* compare(queries: Queries, hostId: string, sources: Sources): Steps<Suspects> {
  if (getHost(queries, hostId)?.state === "gone") return { rooms: [], orgs: [] };
  const rooms = new Set(yield* sources.unsettled(queries, hostId));
  for (const roomUid of sources.arrived(queries, hostId)) rooms.add(roomUid);
  const reported = new Map(usesOf(queries, hostId).map(({ org_id, host_id: _, ...use }) => [org_id, use]));
  yield;
  const used = sources.allUsed(queries);
  // Also organizations without a row: from before this host was a member, or lost by the directory.
  const known = new Set([...reported.keys(), ...[...used].flatMap(([org_id, use]) => (hasAny(use) ? [org_id] : []))]);
  const orgs = [...known].filter((org_id) => !isSame(reported.get(org_id) ?? NONE, used.get(org_id) ?? NONE));
  return { rooms: [...rooms], orgs };
}

/** Suspects of one change, which holds a turn of the event loop for some milliseconds. */
const TOGETHER = 10;

/** The suspects in parts of a change each: at least one part, for this host's own row. */
export function* inParts({ rooms, orgs }: Suspects): Generator<Suspects> {
  for (let at = 0; at === 0 || at < rooms.length || at < orgs.length; at += TOGETHER)
    yield { rooms: rooms.slice(at, at + TOGETHER), orgs: orgs.slice(at, at + TOGETHER) };
}

/** Changes to be made, within a transaction of shared rows; none if all rows are correct, and for a removed host. */
export function differences(
  queries: Queries,
  self: Self,
  sources: Sources,
  suspects: Suspects,
): ((within: Queries) => void)[] {
  const { host_id } = self;
  const known = getHost(queries, host_id);
  if (known?.state === "gone") return [];
  // A host that ended directly after it had joined has not written its row.
  const before = known ?? { state: "active" as const, joined_at: now() };
  const row = { ...before, ...self, certificate: sources.certificate };
  const host = JSON.stringify(row) === JSON.stringify(known) ? [] : [(within: Queries) => putHost(within, row)];
  const ended = sources.placedWithoutRoom(queries, host_id, suspects.rooms);
  // A room with a recently claimed move to this host has no row here yet.
  const arriving = ended.length > 0 ? sources.arriving() : NOTHING_ARRIVES;
  const misplaced = sources.misplaced(queries, host_id, suspects.rooms);
  const leaving = misplaced.length > 0 ? sources.leaving() : NOTHING_ARRIVES;
  const present = misplaced.filter(({ room_uid }) => !leaving.has(room_uid));
  const unsaid = present.filter(({ owner, named }) => owner === null && named === null);
  // The directory forgot that they came here: no host that has one of them in the current state has it in an older epoch.
  const forgotten = present.filter(({ owner, epoch }) => owner !== null && owner.epoch < epoch);
  const contested = present.filter(
    ({ owner, epoch }) => owner?.epoch === epoch && owner.host_id !== host_id && owner.contested_by !== host_id,
  );
  const used = suspects.orgs.map((org_id) => [org_id, sources.used(queries, org_id)] as const);
  const outdated = used.filter(([org_id, use]) => !isSame(useOn(queries, org_id, host_id), use));
  return [
    ...host,
    ...ended
      .filter((roomUid) => !arriving.has(roomUid))
      .map((roomUid) => (within: Queries) => deletePlacement(within, roomUid)),
    ...unsaid.map(
      ({ owner: _, named: __, ...room }) =>
        (within: Queries) =>
          insertPlacement(within, { ...room, host_id }),
    ),
    ...forgotten.map(
      ({ room_uid, epoch }) =>
        (within: Queries) =>
          movePlacement(within, room_uid, { host_id, epoch }),
    ),
    ...contested.map(
      ({ room_uid }) =>
        (within: Queries) =>
          contestPlacement(within, room_uid, host_id),
    ),
    ...sources
      .arrived(queries, host_id)
      .filter((roomUid) => suspects.rooms.includes(roomUid))
      .map((roomUid) => (within: Queries) => endMovedUse(within, roomUid)),
    ...outdated.map(
      ([org_id, use]) =>
        (within: Queries) =>
          setUse(within, org_id, host_id, use),
    ),
  ];
}

const hasAny = ({ rooms, sandboxes, disk_gib }: HostUse) => rooms > 0 || sandboxes > 0 || disk_gib > 0;
const NONE: HostUse = { rooms: 0, sandboxes: 0, memory_mib: 0, disk_gib: 0, used_micro: 0 };

/** A room here, and the room that has its name in the cluster directory. */
export type LostName = Pick<PlacedRoom, "room_uid" | "org_id" | "room_id"> & {
  by: { room_uid: RoomUid; host_id: string };
};

/** Those of these rooms that have lost their names to others in the cluster directory: it forgot that they were theirs. */
export function lostNames(queries: Queries, hostId: string, sources: Sources, rooms: readonly RoomUid[]): LostName[] {
  return sources.misplaced(queries, hostId, rooms).flatMap(({ room_uid, org_id, room_id, named }) => {
    if (named === null || named.room_uid === room_uid) return [];
    return [{ room_uid, org_id, room_id, by: named }];
  });
}

/** Used credits grow all the time: the row is updated after each further credit. */
const CREDIT_MICRO = 1_000_000;

const isSame = (a: HostUse, b: HostUse) =>
  a.rooms === b.rooms &&
  a.sandboxes === b.sandboxes &&
  a.memory_mib === b.memory_mib &&
  a.disk_gib === b.disk_gib &&
  Math.abs(a.used_micro - b.used_micro) < CREDIT_MICRO;

/**
 * Owns what is said of this host to the others: how it is reached, which rooms it has, what organizations have on it. Rows of this host are
 * compared with what is so here, and set right: after a crash between two steps, after rooms have ended, after a new configuration.
 */
import type { OrgId } from "../../shared/ids.ts";
import type { Log } from "../core/log.ts";
import type { Queries } from "../db/client.ts";
import type { HostUse, PlacedRoom } from "./directory.ts";
import type { Load } from "./leases.ts";
import {
  deletePlacement,
  getHost,
  insertPlacement,
  placementOf,
  placementOfRoom,
  placementsOn,
  putHost,
  setUse,
  usesOf,
} from "./placements.ts";
import type { HostRow } from "./table.ts";

/** What there is to say, once the host is put together. */
export interface Sources {
  certificate: string;
  load(): Load;
  /** What an organization has here just now. */
  used(queries: Queries, orgId: OrgId): HostUse;
  /** The rooms that it has. */
  rooms(queries: Queries): PlacedRoom[];
  /** Rooms that come from other hosts, and have no rows here yet. */
  arriving(): ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

export type Self = Pick<HostRow, "host_id" | "address" | "url" | "labels">;

/** Changes to be made, within a transaction of what is shared; none where all that is said is so. */
export function differences(queries: Queries, self: Self, sources: Sources, log: Log): ((within: Queries) => void)[] {
  const { host_id } = self;
  const known = getHost(queries, host_id);
  const row = known && { ...known, ...self, certificate: sources.certificate };
  const host = row && JSON.stringify(row) !== JSON.stringify(known) ? [(within: Queries) => putHost(within, row)] : [];
  const rooms = new Map(sources.rooms(queries).map((room) => [room.room_uid, room]));
  const placed = new Set(placementsOn(queries, host_id).map(({ room_uid }) => room_uid));
  const ended = [...placed].filter((roomUid) => !rooms.has(roomUid));
  // One that has just got another owner is taken for none of ours, and none that has ended.
  const arriving = ended.length > 0 ? sources.arriving() : NONE;
  const unsaid = [...rooms.values()].filter(
    ({ room_uid }) => !placed.has(room_uid) && !placementOfRoom(queries, room_uid),
  );
  const outdated = usesOf(queries, host_id).filter(
    ({ org_id, host_id: _, ...said }) => !isSame(said, sources.used(queries, org_id)),
  );
  return [
    ...host,
    ...ended
      .filter((roomUid) => !arriving.has(roomUid))
      .map((roomUid) => (within: Queries) => deletePlacement(within, roomUid)),
    ...unsaid.map((room) => (within: Queries) => {
      if (placementOf(within, room.org_id, room.room_id)) {
        log.error("a room's name is another's", { room_uid: room.room_uid, room_id: room.room_id });
        return;
      }
      insertPlacement(within, { ...room, host_id, epoch: 1 });
    }),
    ...outdated.map(
      ({ org_id }) =>
        (within: Queries) =>
          setUse(within, org_id, host_id, sources.used(within, org_id)),
    ),
  ];
}

/** What is spent grows all the time: it is said again once it is a credit more. */
const CREDIT_MICRO = 1_000_000;

const isSame = (a: HostUse, b: HostUse) =>
  a.rooms === b.rooms &&
  a.sandboxes === b.sandboxes &&
  a.memory_mib === b.memory_mib &&
  a.disk_gib === b.disk_gib &&
  Math.abs(a.used_micro - b.used_micro) < CREDIT_MICRO;

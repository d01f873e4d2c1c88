/**
 * Use of rooms that move. The change that gives a room to another host also transfers its use, so that the sum over all hosts is unchanged:
 * the former host, which still has the rows of the room, does not count it from then on, and the next one, which has none yet, counts the
 * use in its placement.
 */
import type { OrgId } from "../../shared/ids.ts";
import type { Queries } from "../db/client.ts";
import type { HostUse, OrgUse, Owner } from "./directory.ts";
import { movePlacement, setUse, useOn } from "./placements.ts";
import type { PlacementRow } from "./table.ts";

export function addUse(a: OrgUse, b: OrgUse): OrgUse {
  return {
    rooms: a.rooms + b.rooms,
    sandboxes: a.sandboxes + b.sandboxes,
    memory_mib: a.memory_mib + b.memory_mib,
    disk_gib: a.disk_gib + b.disk_gib,
  };
}

export function subtractUse(a: OrgUse, b: OrgUse): OrgUse {
  return {
    rooms: a.rooms - b.rooms,
    sandboxes: a.sandboxes - b.sandboxes,
    memory_mib: a.memory_mib - b.memory_mib,
    disk_gib: a.disk_gib - b.disk_gib,
  };
}

/** Gives a room of this host to another host. `used` returns the use of this host by its placements. Within a change. */
export function givePlacement(
  queries: Queries,
  { room_uid, org_id, host_id: from }: PlacementRow,
  next: Owner,
  used: (queries: Queries, orgId: OrgId) => HostUse,
): void {
  const before = used(queries, org_id);
  movePlacement(queries, room_uid, next);
  const left = used(queries, org_id);
  const moved = subtractUse(before, left);
  movePlacement(queries, room_uid, next, moved);
  setUse(queries, org_id, from, left);
  const there = useOn(queries, org_id, next.host_id);
  setUse(queries, org_id, next.host_id, { ...there, ...addUse(there, moved) });
}

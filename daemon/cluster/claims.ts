/**
 * Ownership changes of a moving room, within a transaction of the cluster directory: the claim for another host, and the refusal of further
 * claims.
 */
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import { noSuchHost } from "./choose-host.ts";
import type { HostUse, Owner } from "./directory.ts";
import { givePlacement } from "./moved-use.ts";
import { getHost, movePlacement, placementOfRoom } from "./placements.ts";

export function ownerIn(queries: Queries, roomUid: RoomUid): Owner | null {
  const row = placementOfRoom(queries, roomUid);
  return row ? { host_id: row.host_id, epoch: row.epoch } : null;
}

/**
 * Gives the room to host `to`. If `used` is present, the room's use moves with it; `used` counts an organization's use on this host. Throws
 * invalid_state if `from` does not own the room in that epoch, and validation_failed if `to` accepts no rooms.
 */
export function claimRoom(
  within: Queries,
  roomUid: RoomUid,
  { from, epoch, to }: { from: string; epoch: number; to: string },
  used?: (queries: Queries, orgId: OrgId) => HostUse,
): Owner {
  const placed = placementOfRoom(within, roomUid);
  if (placed?.host_id !== from || placed.epoch !== epoch) throw notOwned(ownerIn(within, roomUid));
  if (getHost(within, to)?.state !== "active") throw noSuchHost();
  const next = { host_id: to, epoch: epoch + 1 };
  if (used) givePlacement(within, placed, next, used);
  else movePlacement(within, roomUid, next);
  return next;
}

/** Invalidates `epoch`: no later claim with it succeeds. */
export function refuseClaims(within: Queries, roomUid: RoomUid, epoch: number): void {
  const owner = ownerIn(within, roomUid);
  if (owner?.epoch === epoch) movePlacement(within, roomUid, { ...owner, epoch: epoch + 1 });
}

function notOwned(owner: Owner | null): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `This host no longer owns the room in the same epoch: ${owner ? `${owner.host_id} has it` : "no host has it"}.`,
  });
}

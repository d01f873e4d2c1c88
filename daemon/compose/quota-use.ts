/**
 * Use of organizations on this host, as quotas count it. On a host of several, a room that moves counts on the host of its placement: on
 * the former one no longer, though its rows are there, and on the next one already, with the use in its placement.
 */
import type { OrgId } from "../../shared/ids.ts";
import type { HostUse } from "../cluster/directory.ts";
import { addUse, subtractUse } from "../cluster/moved-use.ts";
import type { Queries } from "../db/client.ts";
import { getCredits, usedCredits } from "../domain/orgs/index.ts";
import { comingUse, countRooms, countRoomsByOrg, givenRooms } from "../domain/rooms/index.ts";
import { heldInRoom, NO_SANDBOXES, orgSandboxes, sandboxesByOrg } from "../domain/sandboxes/index.ts";

export interface HeldResources {
  /** Use of an organization, including its used credits. */
  of(queries: Queries, orgId: OrgId): HostUse;
  /** Use of all organizations that have rooms or sandboxes here, or have used credits. */
  all(queries: Queries): Map<OrgId, HostUse>;
}

/** `hostId`: this host's id in a cluster; null: a single host. */
export function makeHeld(hostId: string | null): HeldResources {
  return {
    of: (queries, orgId) => {
      const { used_micro } = getCredits(queries, orgId);
      const use = { ...useOf(countRooms(queries, orgId), orgSandboxes(queries, orgId)), used_micro };
      return hostId === null ? use : (byPlacements(queries, hostId, orgId, new Map([[orgId, use]])).get(orgId) ?? use);
    },
    all: (queries) => {
      const [rooms, sandboxes, credits] = [countRoomsByOrg(queries), sandboxesByOrg(queries), usedCredits(queries)];
      const orgs = new Set([...rooms.keys(), ...sandboxes.keys(), ...credits.keys()]);
      const useBy = (orgId: OrgId): HostUse => ({
        ...useOf(rooms.get(orgId) ?? 0, sandboxes.get(orgId) ?? NO_SANDBOXES),
        used_micro: credits.get(orgId) ?? 0,
      });
      const uses = new Map([...orgs].map((orgId) => [orgId, useBy(orgId)]));
      return hostId === null ? uses : byPlacements(queries, hostId, null, uses);
    },
  };
}

function useOf(rooms: number, { hibernated_rooms, ...held }: typeof NO_SANDBOXES) {
  return { rooms: rooms - hibernated_rooms, ...held };
}

/** Corrects the uses counted from rows by the placements of moving rooms. */
function byPlacements(queries: Queries, hostId: string, orgId: OrgId | null, uses: Map<OrgId, HostUse>) {
  for (const { org_id, room_uid } of givenRooms(queries, hostId, orgId)) {
    const use = uses.get(org_id);
    if (use) uses.set(org_id, { ...use, ...subtractUse(use, useOf(1, heldInRoom(queries, room_uid))) });
  }
  for (const { org_id, use: coming } of comingUse(queries, hostId, orgId)) {
    const use = uses.get(org_id);
    uses.set(org_id, use ? { ...use, ...addUse(use, coming) } : { ...coming, used_micro: 0 });
  }
  return uses;
}

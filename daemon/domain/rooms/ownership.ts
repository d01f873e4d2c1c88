/**
 * The check whether this host owns a room: compares the epoch of its row with the room's placement in the cluster directory.
 *
 *   here        the placement is missing, this host's, or of an older epoch
 *   elsewhere   another host has the room in a newer epoch: calls are forwarded to it
 *   contested   another host has the room in the same epoch: both reject calls until an operator has chosen one
 */
import type { Directory, Owner } from "../../cluster/directory.ts";
import { Elsewhere } from "../../cluster/elsewhere.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { RoomRow } from "./table.ts";

export type Standing = "here" | "elsewhere" | "contested";
type OwnedRoom = Pick<RoomRow, "room_uid" | "org_id" | "room_id" | "epoch" | "branching">;

export interface Ownership {
  standing(row: Pick<RoomRow, "room_uid" | "epoch">): Standing;
  /** Throws Elsewhere, host_unreachable if the other host is unknown, invalid_state for a contested room, and not_a_member. */
  require(row: OwnedRoom): void;
  /** Calls `listener` with each room that `require` finds elsewhere and that is not abandoned here yet. */
  onElsewhere(listener: (row: OwnedRoom) => void): void;
}

export interface OwnershipDeps {
  directory: Pick<Directory, "owner" | "host" | "isMember" | "isOthers">;
  hostId: string;
}

export function makeOwnership({ directory, hostId }: OwnershipDeps): Ownership {
  let found: (row: OwnedRoom) => void = () => {};
  return {
    standing: ({ room_uid, epoch }) => standingOf(directory.owner(room_uid), epoch, hostId),
    require: (row) => {
      // The room's name may refer to another room by now, or another host may own the room: rows on this host are stale.
      if (!directory.isMember() && directory.isOthers(row)) throw new ServiceError("not_a_member");
      const owner = directory.owner(row.room_uid);
      const standing = standingOf(owner, row.epoch, hostId);
      if (standing === "here" || !owner) return;
      if (standing === "contested") throw contested(row, owner, hostId);
      // Until the other host has confirmed that it has the room, it may reject its calls.
      if (row.branching?.kind === "move" && row.branching.claiming) return;
      if (row.branching?.kind !== "move") found(row);
      const host = directory.host(owner.host_id);
      if (!host) throw new ServiceError("host_unreachable", { details: { host: owner.host_id } });
      throw new Elsewhere(host);
    },
    onElsewhere: (listener) => {
      found = listener;
    },
  };
}

function standingOf(owner: Owner | null, epoch: number, hostId: string): Standing {
  if (owner === null || owner.epoch < epoch) return "here";
  const isOther = owner.host_id !== hostId;
  if (owner.epoch > epoch) return isOther ? "elsewhere" : "here";
  return isOther || owner.contested_by ? "contested" : "here";
}

function contested({ room_id }: OwnedRoom, { host_id, contested_by }: Owner, hostId: string): ServiceError {
  const hosts = [host_id, contested_by ?? hostId];
  return new ServiceError("invalid_state", {
    detail: `Room ${room_id} is on two hosts in the same epoch: ${hosts.join(" and ")}. Neither host serves it.`,
    details: { hosts },
    hint: "The operator of the service chooses a host: `roomd cluster keep ROOM_UID`, on that host.",
  });
}

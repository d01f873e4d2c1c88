/** Puts rooms together, with everything that ends when a room does. */
import type { RoomDeps } from "../domain/rooms/deps.ts";
import { makeRooms } from "../domain/rooms/index.ts";
import type { Sandboxes } from "../domain/sandboxes/index.ts";
import type { Base } from "./base.ts";
import type { Drives } from "./drives.ts";
import type { Orgs } from "./orgs.ts";

interface Parts extends Pick<Orgs, "quota" | "meter">, Pick<Drives, "drive" | "kernelQuota" | "limits"> {
  sandboxes: Sandboxes;
  agents: { ofRoom: RoomDeps["fabric"] };
}

export function composeRooms(base: Base, { quota, meter, drive, kernelQuota, limits, sandboxes, agents }: Parts) {
  const { config, log, paths, database, inspected, giveUpSpace, finder, hostId } = base;
  const deps: RoomDeps = {
    database,
    log,
    paths,
    quota,
    hostId,
    driveLimitBytes: limits.bytes,
    driveLimitEntries: limits.entries,
    driveQuota: kernelQuota,
    retentionSeconds: config["drive.retention"],
    giveUpSpace,
    meter,
    driveRoot: (roomUid) => inspected.isolation.newDriveRoot(roomUid),
    drive,
    sandboxes,
    fabric: agents.ofRoom,
  };
  return makeRooms(deps, finder);
}

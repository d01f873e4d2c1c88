/** Assembles the rooms module, with everything that ends with a room. */
import type { InFlightCalls } from "../core/call/in-flight-calls.ts";
import { ServiceError } from "../core/service-error.ts";
import type { RoomDeps } from "../domain/rooms/deps.ts";
import { makeRooms } from "../domain/rooms/index.ts";
import type { Sandboxes } from "../domain/sandboxes/index.ts";
import type { Base } from "./base.ts";
import type { Drives } from "./drives.ts";
import type { Orgs } from "./orgs.ts";
import { systemActor } from "./records.ts";
import type { Reached } from "./sandboxes.ts";

interface RoomParts extends Pick<Orgs, "quota" | "meter">, Pick<Drives, "drive" | "kernelQuota" | "limits"> {
  sandboxes: Sandboxes;
  agents: { ofRoom: RoomDeps["fabric"]; branches: RoomDeps["branch"]["nouns"]; pauses: RoomDeps["pauses"] };
  reached: Pick<Reached, "calls" | "peers">;
  calls: InFlightCalls;
  audit: RoomDeps["audit"];
}

export function composeRooms(
  base: Base,
  { quota, meter, drive, kernelQuota, limits, sandboxes, agents, reached, calls, audit }: RoomParts,
) {
  const { config, log, paths, database, inspected, giveUpSpace, finder, hostId, record } = base;
  const unasked = { actor: systemActor("rooms"), source: "reconciler" } as const;
  const deps: RoomDeps = {
    database,
    directory: base.directory,
    ownership: base.ownership,
    log,
    paths,
    quota,
    hostId,
    moveTally: base.betweenHosts.moves,
    driveLimitBytes: limits.bytes,
    driveLimitEntries: limits.entries,
    driveQuota: kernelQuota,
    retentionSeconds: config["drive.retention"],
    giveUpSpace,
    meter,
    driveRoot: (roomUid) => inspected.isolation.newDriveRoot(roomUid),
    drive,
    branch: {
      sandboxes: sandboxes.branch,
      nouns: agents.branches,
      calls: () => {
        if (!reached.calls) throw new ServiceError("not_ready", { detail: "The service is starting." });
        return reached.calls;
      },
    },
    onEvent: (event, { org_id, room_uid }, details) =>
      record({ ...unasked, event, outcome: "success", org_id, room_uid, details }),
    sandboxes,
    fabric: agents.ofRoom,
    pauses: agents.pauses,
    calls,
    audit,
    peers: () => {
      if (!reached.peers) throw new ServiceError("not_ready", { detail: "The service is starting." });
      return reached.peers;
    },
  };
  return makeRooms(deps, finder);
}

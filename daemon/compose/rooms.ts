/** Assembles the rooms module, with everything that ends with a room. */
import type { InFlightCalls } from "../core/call/in-flight-calls.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Ports } from "../domain/ports/index.ts";
import type { RoomDeps } from "../domain/rooms/deps.ts";
import { makeRooms } from "../domain/rooms/index.ts";
import type { Sandboxes } from "../domain/sandboxes/index.ts";
import type { HostClient } from "../edge/hosts/client.ts";
import { PeerClient } from "../edge/hosts/room-transfer.ts";
import type { CallsBranch } from "../edge/pipeline/idempotency-branch.ts";
import type { Base } from "./base.ts";
import type { Drives } from "./drives.ts";
import type { Orgs } from "./orgs.ts";
import { systemActor } from "./records.ts";

interface RoomParts extends Pick<Orgs, "quota" | "meter">, Pick<Drives, "drive" | "kernelQuota" | "limits"> {
  sandboxes: Sandboxes;
  agents: { ofRoom: RoomDeps["fabric"]; branches: RoomDeps["branch"]["nouns"]; pauses: RoomDeps["pauses"] };
  /** Guests' calls with an Idempotency-Key, which branch with their room. */
  callsBranch: CallsBranch;
  /** Connections to other hosts; null: a standalone host. */
  client: HostClient | null;
  ports: Pick<Ports, "recover">;
  calls: InFlightCalls;
  audit: RoomDeps["audit"];
}

export function composeRooms(
  base: Base,
  { quota, meter, drive, kernelQuota, limits, sandboxes, agents, callsBranch, client, ports, calls, audit }: RoomParts,
) {
  const { config, log, paths, database, inspected, giveUpSpace, finder, hostId, record } = base;
  const unasked = { actor: systemActor("rooms"), source: "reconciler" } as const;
  const peers = client && new PeerClient(client);
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
      calls: callsBranch,
    },
    recoverPorts: ports.recover,
    onEvent: (event, { org_id, room_uid }, details) =>
      record({ ...unasked, event, outcome: "success", org_id, room_uid, details }),
    sandboxes,
    fabric: agents.ofRoom,
    pauses: agents.pauses,
    calls,
    audit,
    peers: () => {
      if (!peers) throw new ServiceError("not_ready", { detail: "The host has no connections to other hosts." });
      return peers;
    },
  };
  return makeRooms(deps, finder);
}

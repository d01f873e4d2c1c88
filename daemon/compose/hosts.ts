/** Host records: this host's for its peers, and all hosts' for API callers. */
import { availableParallelism } from "node:os";
import type { Static } from "@sinclair/typebox";
import type { host } from "../../shared/api/hosts.ts";
import { VERSION } from "../../shared/version.ts";
import { loadHostCertificate } from "../cluster/certificate.ts";
import type { Load } from "../cluster/leases.ts";
import {
  arrivedRooms,
  arrivingRooms,
  countAllRooms,
  leavingRooms,
  misplacedRooms,
  placedWithoutRoom,
  unsettledRooms,
} from "../domain/rooms/index.ts";
import type { Sandboxes } from "../domain/sandboxes/index.ts";
import { HostClient } from "../edge/hosts/client.ts";
import type { Addresses } from "./addresses.ts";
import type { Base } from "./base.ts";
import type { HeldResources } from "./quota-use.ts";

type Measured = Pick<Sandboxes, "figures" | "capacity">;

/** This host's capacity and allocations. */
function loadOf({ database, templates, disk }: Base, sandboxes: Measured): Omit<Load, "ssh"> {
  const { memory_mib: promised, sandboxes: states, outcomes } = sandboxes.figures();
  const { size_bytes, free_bytes } = disk.state();
  return {
    memory_mib: { promised, total: promised + sandboxes.capacity().memory_mib_free },
    disk: { size_bytes, free_bytes },
    cpus: availableParallelism(),
    rooms: countAllRooms(database.queries),
    sandboxes: Object.values(states).reduce((sum, count) => sum + count, 0),
    is_degraded: outcomes.areFailing,
    templates: templates.list(null).map(({ record }) => record.template_id),
  };
}

/** Connections to the other hosts of the service; null: a standalone host. */
export async function composePeers({ cluster, paths, betweenHosts }: Base) {
  if (!cluster) return null;
  const own = await loadHostCertificate(paths.cluster);
  return { own, client: new HostClient({ certificate: own, tally: betweenHosts.calls }) };
}

/** Starts following the other hosts' changes, and publishes this host's state; a standalone host does neither. */
export async function followOthers(
  base: Base,
  sandboxes: Measured,
  held: HeldResources,
  addresses: Addresses,
): Promise<void> {
  const { cluster, paths } = base;
  const gateway = () => addresses.gateway && { host: addresses.gateway.host, port: addresses.gateway.port };
  await cluster?.start({
    certificate: (await loadHostCertificate(paths.cluster)).cert,
    unsettled: unsettledRooms,
    misplaced: misplacedRooms,
    placedWithoutRoom,
    arrived: arrivedRooms,
    arriving: () => arrivingRooms(paths),
    leaving: () => leavingRooms(base.database.queries),
    used: held.of,
    allUsed: held.all,
    load: () => ({ ...loadOf(base, sandboxes), ssh: gateway() }),
  });
}

const capacityOf = ({ is_degraded: _, ssh: __, templates, disk, ...capacity }: Load) => ({
  ...capacity,
  disk: disk ?? null,
  templates: [...templates],
});

/** States of all hosts, including this one. */
export const hostStates = ({ cluster }: Base) => cluster?.hosts().map(({ state }) => state) ?? ["active" as const];

/** All hosts, including this one. */
export function listedHosts(base: Base, sandboxes: Measured, addresses: Addresses): Static<typeof host>[] {
  const { cluster, hostId } = base;
  const own = () => {
    return capacityOf(loadOf(base, sandboxes));
  };
  if (!cluster) {
    const alone = {
      state: "active" as const,
      since: null,
      url: addresses.url,
      labels: {},
      version: VERSION,
      joined_at: null,
    };
    return [{ host: hostId, is_self: true, ...alone, capacity: own() }];
  }
  return cluster.hosts().map((each) => {
    const { host_id, state, url, labels, joined_at } = each;
    const is_self = host_id === hostId;
    const hostLoad = cluster.loadOf(host_id);
    return {
      ...{ host: host_id, is_self, state, since: cluster.sinceOf(each), url, labels, joined_at },
      version: is_self ? VERSION : cluster.versionOf(host_id),
      // A host that has joined and was not started yet has no load.
      capacity: is_self ? own() : hostLoad?.templates ? capacityOf(hostLoad) : null,
    };
  });
}

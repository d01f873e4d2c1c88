/** Commands of the operator of a simulated service: each is a separate process next to the daemon of a host. */
import { makeMemberships } from "../../../daemon/cluster/join-and-leave.ts";
import { describeError, ServiceError } from "../../../daemon/core/service-error.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";
import { URL } from "./daemon.ts";
import { logOf, type SimulatedHost } from "./host.ts";
import type { Service } from "./service.ts";
import { openingOf } from "./session.ts";
import { Process } from "./world.ts";

/** `roomd cluster remove HOST --force`, on another host. */
export function removeHost({ world, network, server, violate }: Service, hostId: string, on: SimulatedHost): void {
  const process = new Process(`operator on ${on.name}`);
  on.process?.onDeath(() => process.kill());
  world.turn(process, () => {
    const connection = openConnection(on.disk.database, { alone: false });
    process.onDeath(() => connection.close());
    const nothing = () => {};
    const memberships = makeMemberships({
      ...{ url: URL, log: logOf(world), directory: on.disk.cluster, secretFiles: [], makeSecrets: nothing },
      database: makeDatabase(connection, () => false, { sync: () => null, close: nothing }),
      self: { host_id: on.member.host_id, address: "", url: "", labels: {} },
      certificate: () => Promise.resolve("certificate"),
      ...{ rooms: () => [], setEpoch: nothing, record: nothing },
      open: openingOf(world, network, server, on.name, process),
    });
    memberships
      .remove(hostId, { force: true })
      .then(
        ({ rooms_lost }) => world.trace(`${hostId} is removed with ${rooms_lost.length} rooms`),
        (error: unknown) => {
          world.trace(`${hostId} is not removed: ${describeError(error)}`);
          if (!(error instanceof ServiceError)) violate(`the operator's command fails: ${describeError(error)}`);
        },
      )
      .finally(() => process.kill());
  });
}

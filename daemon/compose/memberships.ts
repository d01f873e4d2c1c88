/** Composition of cluster membership for the operator's commands: joining and leaving. */
import { loadHostCertificate } from "../cluster/certificate.ts";
import type { HeldRoom } from "../cluster/directory.ts";
import { now } from "../core/clock.ts";
import { ConfigError } from "../core/config/config.ts";
import { durableKey } from "../core/config/durable-file.ts";
import { hostIdOf } from "../core/config/host-id.ts";
import type { Paths } from "../core/config/paths.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import { appendAudit } from "../domain/audit/index.ts";
import { liveRooms, updateRoom } from "../domain/rooms/index.ts";
import { loadHostKey } from "../edge/ssh/host-key.ts";
import { LockedError, takeLock } from "../host/lock.ts";
import { type ComposeOptions, makeDirectories, openDatabase } from "./base.ts";
import { planCluster } from "./cluster.ts";

/** This host's rooms, as published to the other hosts. */
function placedRooms(queries: Queries): HeldRoom[] {
  return liveRooms(queries).map(({ room_uid, org_id, room_id, labels, created_at, epoch }) => ({
    ...{ room_uid, org_id, room_id, labels, created_at, epoch },
  }));
}

const BY_OPERATOR = { actor: { type: "operator", id: "host", name: "operator" }, source: "cli" } as const;

/** For operator commands that start or end this host's membership. Throws ConfigError without cluster.url. */
export async function openMemberships(options: ComposeOptions) {
  const { config, paths, log } = options;
  const plan = planCluster(config);
  if (!plan) throw new ConfigError("cluster.url is empty: set it to the PostgreSQL database that the hosts share");
  makeDirectories(paths);
  const database = openDatabase(paths);
  // Its driver is loaded only on hosts of a cluster.
  const { makeMemberships } = await import("../cluster/join-and-leave.ts");
  const memberships = makeMemberships({
    ...{ url: plan.url, database, log, directory: paths.cluster },
    self: { host_id: hostIdOf(config, paths.host_id), ...plan.self },
    // Made by the first reader.
    secretFiles: [paths.ssh_host_key, paths.port_key, paths.webhook_key],
    makeSecrets: () => {
      loadHostKey(paths.ssh_host_key);
      for (const file of [paths.port_key, paths.webhook_key]) durableKey(file);
    },
    certificate: async () => (await loadHostCertificate(paths.cluster)).cert,
    rooms: placedRooms,
    setEpoch: (queries, roomUid, epoch) => updateRoom(queries, roomUid, { epoch }),
    record: (queries, event, details) =>
      appendAudit(queries, { ...BY_OPERATOR, event, outcome: "success", at: now(), org_id: null, details }),
  });
  return {
    ...memberships,
    close: async () => {
      memberships.close();
      await database.close();
    },
  };
}

/** For changes of this host itself, which require that no daemon is running. */
export function requireStopped(paths: Paths): () => void {
  // A joining host may have no directories yet.
  makeDirectories(paths);
  try {
    return takeLock(paths.data_lock, "data_dir");
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    throw new ServiceError("invalid_state", {
      detail: `A roomd daemon (pid ${error.holder}) is running on this host.`,
      hint: "Stop it first, as with `systemctl stop roomd`, and start it afterwards.",
    });
  }
}

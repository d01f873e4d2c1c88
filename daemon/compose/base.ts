/**
 * Base of all parts: directories and their locks, the host's name, the disk, the database, the host's capabilities, its templates, the room
 * finder, and the recorder of events without a call.
 */
import { chmodSync, closeSync, existsSync, openSync, rmSync } from "node:fs";
import type { OrgId } from "../../shared/ids.ts";
import { makeStandalone } from "../cluster/standalone.ts";
import { CallStats } from "../core/call/call-stats.ts";
import type { Config } from "../core/config/config.ts";
import { hostIdOf } from "../core/config/host-id.ts";
import type { Paths } from "../core/config/paths.ts";
import { endForDisk } from "../core/disk-failure.ts";
import type { Log } from "../core/log.ts";
import { describeError } from "../core/service-error.ts";
import { makeCheckpoints } from "../db/checkpoints.ts";
import { openConnection } from "../db/client.ts";
import { makeLogSync, makeOwnLogSync, rewriteLog, writeWholeLog } from "../db/log-sync.ts";
import { migrate } from "../db/migrate.ts";
import { type LocalDatabase, makeDatabase } from "../db/transact.ts";
import { makeOwnership, makeRoomFinder } from "../domain/rooms/index.ts";
import { makeTemplateGroups, regroupOrgTemplates, type TemplateGroups } from "../domain/templates/groups.ts";
import { makeTemplates, type Templates } from "../domain/templates/registry.ts";
import { makeTraces, type TracesPlan } from "../domain/traces/index.ts";
import { Disk } from "../host/files/disk.ts";
import { crossedDirectory } from "../host/isolation/directories.ts";
import { takeCrash } from "../host/last-exit.ts";
import { takeLock } from "../host/lock.ts";
import { makeAside } from "./aside.ts";
import { openCluster, requireConfirmed } from "./cluster.ts";
import { type InspectedHost, inspectHost } from "./inspect-host.ts";
import { makeReaders } from "./readers.ts";
import { makeRecorder } from "./records.ts";

export interface ComposeOptions {
  config: Config;
  paths: Paths;
  log: Log;
  /** Notifies the service manager that the start takes longer; the next call comes within `ms`. */
  extendStart?: (ms: number) => void;
}

export type Base = Awaited<ReturnType<typeof openBase>>;

/** Opens the resources of a daemon, which locks its directories for exclusive use. */
export async function openBase(options: ComposeOptions, tracesPlan: TracesPlan) {
  const { config, paths, log, extendStart } = options;
  makeDirectories(paths);
  const locks = [takeLock(paths.daemon_lock, "runtime_dir"), takeLock(paths.data_lock, "data_dir")];
  const hostId = hostIdOf(config, paths.host_id);
  requireConfirmed(paths);
  const crash = takeCrash(paths.last_end);
  if (crash !== null) log.warn("the service before this one crashed", { ended_by: crash });
  const disk = new Disk(paths, {
    floor_mib: config["limits.disk_free_mib"],
    reserve_mib: config["limits.disk_reserve_mib"],
  });
  const database = openDatabase(paths, { onFull: (vital) => disk.giveUp(vital), log, extendStart });
  const reads = makeReaders(database, paths.database, log);
  const aside = makeAside(log);
  const betweenHosts = { rounds: new CallStats(), calls: new CallStats(), moves: new CallStats() };
  const cluster = await openCluster({ config, paths, log, database, tally: betweenHosts.rounds }, hostId);
  const inspected = await inspectHost(config, paths, log);
  const templateGroups = makeTemplateGroups(database);
  const groupOf = groupsOn(inspected, templateGroups);
  // Includes versions no longer used for new sandboxes: before organizations had groups of their own, these had the host's group.
  await regroupOrgTemplates(paths, groupOf).catch((error: unknown) =>
    log.warn("failed to set the groups of organizations' templates", { error: describeError(error) }),
  );
  const tracing = makeTraces({ plan: tracesPlan, hostId, log });
  const directory = cluster ?? makeStandalone(database, hostId);
  const ownership = makeOwnership({ directory, hostId });
  return {
    ...options,
    hostId,
    crashed: crash !== null,
    disk,
    /** Frees some space on a full disk for work that frees more. */
    giveUpSpace: () => disk.giveUp(true),
    database,
    reads,
    aside,
    /** The cluster that this host is a member of; null: a standalone host. */
    cluster,
    betweenHosts,
    directory,
    ownership,
    inspected,
    templates: templatesOn(options, inspected, templateGroups),
    templateGroups,
    finder: makeRoomFinder(database, paths, ownership),
    record: makeRecorder(database, log),
    tracing,
    close: async () => {
      await tracing.stop();
      await cluster?.close();
      await Promise.all([reads.close(), aside.close()]);
      await database.close();
      disk.close();
      for (const release of locks) release();
    },
  };
}

export function templatesOn(
  { paths, log }: ComposeOptions,
  inspected: InspectedHost,
  groups: TemplateGroups,
): Templates {
  return makeTemplates({
    paths,
    acceleration: () => inspected.findings.acceleration.acceleration,
    qemuVersion: inspected.findings.qemu_version,
    groupOf: groupsOn(inspected, groups),
    log,
  });
}

/** The group that reads an owner's templates; assigned at the first call. */
function groupsOn(inspected: InspectedHost, groups: TemplateGroups) {
  return async (owner: OrgId | null): Promise<number | null> =>
    inspected.isolation.ofOrg(owner === null ? null : await groups.take(owner)).templateGroup;
}

export function makeDirectories(paths: Paths): void {
  for (const directory of [paths.data, paths.templates, paths.rooms, paths.sandboxes, paths.runtime, paths.guests]) {
    crossedDirectory(directory);
  }
}

interface Opening {
  /** Frees space on a full disk, in a daemon. Absent: the database is opened concurrently with a daemon. */
  onFull?: (vital: boolean) => boolean;
  log?: Log;
  beforeChange?: () => void;
  extendStart?: ComposeOptions["extendStart"];
}

export function openDatabase(paths: Paths, { onFull, log, beforeChange, extendStart }: Opening = {}): LocalDatabase {
  // SQLite gives its log and index the same mode. Other users may traverse the directory.
  closeSync(openSync(paths.database, "a", 0o600));
  chmodSync(paths.database, 0o600);
  if (onFull) {
    const discarded = writeWholeLog(paths.database, { afterFailure: existsSync(paths.disk_failed) });
    if (discarded.commits > 0) log?.error("the database's log is damaged: commits were discarded", { ...discarded });
    rmSync(paths.disk_failed, { force: true });
  }
  const connection = openConnection(paths.database, { alone: onFull !== undefined });
  if (onFull) rewriteLog(connection, paths.database);
  migrate(connection, { beforeChange, extendStart });
  // An operator's command blocks no other work by flushing.
  if (!onFull) return makeDatabase(connection, () => false, makeOwnLogSync(paths.database));
  return makeDatabase(
    connection,
    onFull,
    makeLogSync(paths.database, endForDisk),
    makeCheckpoints(paths.database, connection, endForDisk),
    endForDisk,
  );
}

/** Upkeep while the daemon runs: disk and database space, and reconciliation of rows with the host. */
import { at, wallMs } from "../core/clock.ts";
import { every, repeat } from "../core/concurrency/repeat.ts";
import { describeError } from "../core/service-error.ts";
import { runFills } from "../db/fills.ts";
import { fillsOf, MIGRATIONS } from "../db/migrate.ts";
import { shrink } from "../db/shrink.ts";
import type { OAuth } from "../domain/oauth/index.ts";
import type { Meter, OrgChanges } from "../domain/orgs/index.ts";
import type { Rooms } from "../domain/rooms/index.ts";
import type { Sandboxes } from "../domain/sandboxes/index.ts";
import { hasBuilds, sweepDeadBuilds, sweepOwnMachines } from "../domain/templates/build-sandboxes.ts";
import { sweepRoots } from "../domain/templates/root-cache.ts";
import type { WarmPool } from "../host/guest/pool.ts";
import type { Base } from "./base.ts";
import { endExpiredMakers } from "./expired-makers.ts";
import { forgetEnded } from "./forget-ended.ts";

/** Interval of attempts to restore the disk's reserve and resume stalled guests once there is space. */
const RESTORE_MS = 1000;
/** A guest can make its processes log several megabytes per second. */
const BOUND_MS = 1000;

/** How often grants of applications that can no longer be used are removed. */
const SWEEP_MS = 3_600_000;
const MIB = 1024 ** 2;

interface UpkeepParts {
  sandboxes: Sandboxes;
  rooms: Rooms;
  meter: Meter;
  oauth: OAuth;
  changes: OrgChanges;
  pool: Pick<WarmPool, "refill">;
}

export function startUpkeep(
  { config, paths, log, disk, database, inspected }: Base,
  { sandboxes, rooms, meter, oauth, changes, pool }: UpkeepParts,
) {
  const logged = (message: string) => (error: unknown) => log.error(message, { error: describeError(error) });
  const sweepBuilds = () =>
    sweepDeadBuilds(paths).catch((error: unknown) =>
      log.warn("failed to sweep leftovers of a template build", { error: describeError(error) }),
    );
  void sweepBuilds();
  void sweepOwnMachines(paths).catch(logged("failed to sweep leftovers of the service's own machines"));
  const stopBounding = every(
    BOUND_MS,
    () => sandboxes.boundLogs(),
    logged("failed to truncate logs of guests' processes"),
  );
  const restore = () => {
    disk.restore();
    if (disk.hasSpace) sandboxes.unstall();
  };
  const stopRestoring = every(RESTORE_MS, restore, logged("failed to restore the disk's reserve"));
  const stopReconciling = repeat(config["reconcile.interval"] * 1000, async () => {
    await inspected.lookAgain().catch(logged("failed to inspect the host again"));
    for (const noun of [sandboxes, rooms]) await noun.reconcile().catch(logged("failed to reconcile"));
    // The set of recently used templates changes over time.
    pool.refill();
    if (hasBuilds(paths)) await sweepBuilds();
    // Others need the space more.
    const mostBytes = disk.hasSpace ? config["template.cache_mib"] * MIB : 0;
    await sweepRoots(paths, mostBytes).catch(logged("failed to sweep roots of builds"));
    await meter.checkpoint().catch(logged("failed to write usage"));
  });
  const stopShrinking = repeat(config["reconcile.interval"] * 1000, () =>
    shrink(database).catch(logged("failed to shrink the database")),
  );
  const filling = new AbortController();
  const stopFilling = repeat(config["reconcile.interval"] * 1000, () =>
    runFills(database, fillsOf(MIGRATIONS), filling.signal).catch(logged("failed to fill tables of an older version")),
  );
  const kept = config["audit.retention"] * 1000;
  const stopForgetting = repeat(config["reconcile.interval"] * 1000, () =>
    forgetEnded(database, kept === 0 ? "" : at(wallMs() - kept)).catch(
      logged("failed to delete rows of ended resources"),
    ),
  );
  const stopEnding = repeat(config["reconcile.interval"] * 1000, () =>
    endExpiredMakers(database.queries, changes).catch(logged("failed to end things whose maker has expired")),
  );
  const stopSweeping = repeat(SWEEP_MS, () => oauth.sweep());
  return {
    stop: () => {
      stopEnding();
      stopSweeping();
      stopForgetting();
      stopRestoring();
      stopBounding();
      stopShrinking();
      stopFilling();
      filling.abort();
      stopReconciling();
    },
  };
}

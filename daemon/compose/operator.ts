/** Composition of operators' commands on the host itself, with a running daemon or without one. */
import type { TemplateRecord } from "../../shared/api/templates.ts";
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import type { Cluster } from "../cluster/postgres.ts";
import { makeStandalone } from "../cluster/standalone.ts";
import { CallStats } from "../core/call/call-stats.ts";
import { hostIdOf } from "../core/config/host-id.ts";
import type { Paths } from "../core/config/paths.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import type { Database } from "../db/transact.ts";
import { headsFilesOf, listService, lostAnchors, verifyAll } from "../domain/audit/index.ts";
import { backupFigures, planBackups } from "../domain/backups/index.ts";
import { openTunnels } from "../domain/egress/tunnels.ts";
import { serveAlone } from "../domain/egress/without-sandbox.ts";
import { getOrg, makeOperator, makeOrgChanges, type OrgRow, type Plans, plansOf } from "../domain/orgs/index.ts";
import { countAllRooms, countRooms, roomNameOf } from "../domain/rooms/index.ts";
import { egressRules } from "../domain/sandboxes/egress-list.ts";
import { listHibernated, listQuarantined } from "../domain/sandboxes/index.ts";
import { runChecks } from "../domain/service/checks.ts";
import { buildTemplate, removeTemplate } from "../domain/templates/build.ts";
import type { BuildDeps } from "../domain/templates/build-deps.ts";
import { makeTemplateGroups } from "../domain/templates/groups.ts";
import { keptRecipe } from "../domain/templates/kept-recipe.ts";
import { isOutdated } from "../domain/templates/registry.ts";
import { findPasskeys, makeSignUpOperator, makeUserOperator } from "../domain/users/index.ts";
import { planListen } from "../edge/http/tls.ts";
import { requireBody } from "../edge/pipeline/input.ts";
import { spareBytes } from "../host/files/disk.ts";
import { freeBytes } from "../host/files/space.ts";
import type { GuestHost } from "../host/guest/plan.ts";
import { LockedError, takeLock } from "../host/lock.ts";
import { type ComposeOptions, makeDirectories, openDatabase, templatesOn } from "./base.ts";
import { openCluster } from "./cluster.ts";
import { type InspectedHost, inspectHost } from "./inspect-host.ts";
import { MAKER_RULES } from "./made.ts";
import { namedRegistries } from "./org-templates.ts";
import { PERSONAL } from "./personal.ts";
import { headsFile, shutdownFindings } from "./service.ts";

export async function openOperator(options: ComposeOptions) {
  const { config, paths, log } = options;
  makeDirectories(paths);
  const database = openDatabase(paths, { beforeChange: () => requireNoDaemon(paths) });
  let cluster: Cluster | null = null;
  /** Opened only by commands that change shared rows. */
  const openDirectory = onceOnly(async () => {
    const hostId = hostIdOf(config, paths.host_id);
    cluster = await openCluster({ config, paths, log, database, tally: new CallStats() }, hostId);
    return cluster ?? makeStandalone(database, hostId);
  });
  const shared: Database = {
    ...database,
    commit: async (work, vital) => (await openDirectory()).database.commit(work, vital),
  };
  const changes = makeOrgChanges(shared, MAKER_RULES);
  const plans = plansOf(config);
  const operator = makeOperator(database, shared, changes, plans, requireBody);
  const roomName = (roomUid: RoomUid) => roomNameOf(database.queries, roomUid) ?? roomUid;
  let inspected: InspectedHost | undefined;
  const inspect = async () => {
    inspected ??= await inspectHost(config, paths, log);
    return inspected;
  };
  /** Null: a standalone host. */
  const findAnchors = async () => {
    try {
      await openDirectory();
      const store = (cluster as Cluster | null)?.anchors;
      return store ? { lost: (await lostAnchors(database.queries, store)).chains } : null;
    } catch {
      return { lost: null };
    }
  };
  const findClock = async () => {
    try {
      await openDirectory();
      const ahead_ms = (await (cluster as Cluster | null)?.askClockAheadMs()) ?? null;
      return cluster === null ? null : { ahead_ms };
    } catch {
      return { ahead_ms: null };
    }
  };
  const findMembership = async () => {
    const is_member = await (cluster as Cluster | null)?.askIsMember().catch(() => null);
    // Whether a daemon has read the cluster directory is known only to the daemon.
    return is_member === undefined ? null : { is_member, has_followed: true };
  };
  const findDirectory = () => {
    const shared = cluster as Cluster | null;
    return shared && { ...shared.serverSettings(), unfit: shared.unfitRows() };
  };
  const templateGroups = makeTemplateGroups(database);
  const registry = async () => templatesOn(options, await inspect(), templateGroups);
  return {
    ...operator,
    ...makeUserOperator(shared, changes, PERSONAL),
    ...makeSignUpOperator({ database: shared, mode: config["signup.mode"], hasMail: config["smtp.host"] !== "" }),
    templates: {
      build: async (
        templateId: string,
        build: Parameters<typeof buildTemplate>[2] & Pick<BuildDeps, "registryAuth">,
      ): Promise<TemplateRecord> => {
        const host = await inspect();
        const settings = {
          ...{ log, privateRanges: config["egress.private_ranges"], hostsFile: config["egress.hosts_file"] },
          mibPerSecond: config["egress.mib_per_second"],
        };
        const serve: BuildDeps["egress"]["serve"] = (allowlist, refused) => serveAlone(settings, allowlist, refused);
        return await buildTemplate(
          {
            paths,
            host: (): GuestHost => host.guestHost(),
            numberOf: templateGroups.take,
            programs: host.programs,
            qemuVersion: host.findings.qemu_version,
            mirror: config["template.mirror"],
            registryAuth: build.registryAuth,
            egress: {
              wrong: (allowlist) => egressRules("egress_allowlist", allowlist).map(({ message }) => message),
              serve,
            },
            limits: { ...host.limits, cache_bytes: config["template.cache_mib"] * MIB },
            openTunnels: (path, refused) =>
              openTunnels({ hostsFile: settings.hostsFile, named: namedRegistries(config), path, refused }),
            requireSpace: (bytes) => requireSpace(paths, bytes, config["limits.disk_free_mib"] * MIB),
            capsOf: (orgId) => templateCaps(getOrg(database.queries, orgId), plans),
            probe: host.probe,
          },
          templateId,
          {
            owner: build.owner,
            recipe: build.recipe,
            dockerfile: build.dockerfile,
            context: build.context,
            secrets: build.secrets,
            args: build.args,
            anew: build.anew,
            onProgress: build.onProgress,
            ...(build.onStage && { onStage: build.onStage }),
          },
        );
      },
      list: async () => {
        const there = (await registry()).list(null);
        return {
          items: there.map(({ record }) => record),
          outdated: there.filter(isOutdated).map(({ record }) => record.template_id),
        };
      },
      remove: (templateId: string) => removeTemplate(paths, templateId),
      keptRecipe: (templateId: string) => keptRecipe(paths, templateId),
    },
    doctor: async () =>
      runChecks(
        (await inspect()).findings,
        await registry(),
        paths,
        {
          quarantined: listQuarantined(database.queries),
          awaited: 0,
          shutdown: shutdownFindings(
            { config, paths, database },
            spareBytes(paths.data, config["limits.disk_free_mib"] * MIB),
            ({ room_uid, agent_id }) => `${roomName(room_uid)}/${agent_id}`,
          ),
        },
        {
          passkeys: config["web.enabled"] ? findPasskeys(database.queries, planListen(config).url) : null,
          backups: backupFigures(planBackups(config), paths.backup_state),
          anchors: await findAnchors(),
          clock: await findClock(),
          membership: await findMembership(),
          directory: findDirectory(),
          threads: null,
        },
      ),
    /** Sandboxes saved by `roomd hibernate`, and those that still have a guest, each with the reason. */
    hibernated: () => {
      const { asleep, awake } = listHibernated(database.queries);
      return {
        hibernated: asleep.length,
        left_out: awake.map(({ room_uid, agent_id, sandbox_id, status_message }) => ({
          ...{ room_id: roomName(room_uid), agent_id, sandbox_id, why: status_message },
        })),
      };
    },
    countRooms: () => countAllRooms(database.queries),
    countRoomsOf: (orgId: OrgId) => countRooms(database.queries, orgId),
    /** Whether a daemon is running on this data. */
    isServed: () => holderOf(paths) !== null,
    listAudit: (query: Parameters<typeof listService>[1]) => listService(database.queries, query),
    /** Verifies the audit, also against these files of heads in addition to the configured one. */
    verifyAudit: async (files: readonly string[] = []) => {
      // Chains are verified even without the cluster directory's anchors.
      await openDirectory().catch((error: unknown) => {
        log.warn("failed to read the anchors of the audit", { error: describeError(error) });
      });
      return await verifyAll(
        database.queries,
        [...headsFilesOf(headsFile(options)), ...files],
        (cluster as Cluster | null)?.anchors,
      );
    },
    close: async () => {
      inspected?.close();
      await (cluster as Cluster | null)?.close();
      await database.close();
    },
  };
}

const MIB = 1024 ** 2;

function templateCaps(org: OrgRow | undefined, plans: Plans) {
  if (org) return plans[org.plan].template_mib;
  throw new Error("the organization ended in the meantime");
}

function requireSpace({ data }: Paths, bytes: number, floor: number): void {
  const free = freeBytes(data);
  if (free - bytes >= floor) return;
  throw new ServiceError("disk_full", {
    detail: `The build needs ${Math.ceil(bytes / MIB)} MiB in the data directory, but only ${Math.floor(free / MIB)} MiB are free.`,
  });
}

function onceOnly<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | null = null;
  return () => {
    opened ??= open();
    return opened;
  };
}

/** Throws if a daemon is running: if this version would migrate a running daemon's data, that daemon is older. */
function requireNoDaemon(paths: Paths): void {
  const holder = holderOf(paths);
  if (holder === null) return;
  throw new ServiceError("invalid_state", {
    detail: `An older roomd daemon (pid ${holder}) is running on this host. This version would change its data while it runs.`,
    hint: "Stop it first, or use the roomd binary that it was started from.",
  });
}

/** The daemon that holds the data; null if none does. */
function holderOf(paths: Paths): LockedError["holder"] | null {
  try {
    takeLock(paths.data_lock, "data_dir")();
    return null;
  } catch (error) {
    if (error instanceof LockedError) return error.holder;
    throw error;
  }
}

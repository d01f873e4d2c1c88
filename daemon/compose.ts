/**
 * Owns how the parts are put together: the daemon, and what an operator's command needs of it without a daemon.
 * Nothing else knows more than its own folder and the rows below it.
 */
import { chmodSync, closeSync, openSync, readFileSync } from "node:fs";
import { StreamErrorCode } from "../shared/agent-protocol/messages.ts";
import { operations } from "../shared/api/operations.ts";
import type { TemplateRecord } from "../shared/api/templates.ts";
import { GUEST_CIDS, type RoomUid } from "../shared/ids.ts";
import { Agents } from "./agents/index.ts";
import {
  type AuditEntry,
  appendAudit,
  countRecords,
  headsFilesOf,
  listService,
  makeAudit,
  verifyAll,
} from "./audit/index.ts";
import { makeBarriers } from "./barriers/index.ts";
import { Bells } from "./core/bells.ts";
import { now } from "./core/clock.ts";
import type { Config } from "./core/config.ts";
import type { Log } from "./core/log.ts";
import type { Bound } from "./core/operation.ts";
import type { Paths } from "./core/paths.ts";
import { repeat } from "./core/repeat.ts";
import { RequestCounts } from "./core/request-counts.ts";
import { describeError, ServiceError } from "./core/service-error.ts";
import { openConnection } from "./db/client.ts";
import { migrate } from "./db/migrate.ts";
import { type Database, makeDatabase } from "./db/transact.ts";
import { makeDrive } from "./drive/index.ts";
import { makeGuestDoor } from "./edge/guest/door.ts";
import { makeDirect } from "./edge/http/direct.ts";
import { makeHttpServer } from "./edge/http/server.ts";
import { loadCertificate, planListen } from "./edge/http/tls.ts";
import { watchCertificate } from "./edge/http/tls-watch.ts";
import { MAX_REPLY_BYTES, releaseUnanswered } from "./edge/idempotency.ts";
import { requireBody } from "./edge/input.ts";
import { makeMcpDoor } from "./edge/mcp/door.ts";
import { makeRoad } from "./edge/run.ts";
import type { ConnectionDeps } from "./edge/ssh/connection.ts";
import { loadHostKey } from "./edge/ssh/host-key.ts";
import { planSsh, type SshPlan } from "./edge/ssh/plan.ts";
import { startSshServer } from "./edge/ssh/server.ts";
import { makeEgress } from "./egress/index.ts";
import { makeFabric } from "./fabric/index.ts";
import { Disk } from "./host/files/disk.ts";
import { ProjectQuota } from "./host/files/project-quota.ts";
import type { GuestHost } from "./host/guest/plan.ts";
import { WarmPool } from "./host/guest/pool.ts";
import { crossedDirectory } from "./host/isolation/directories.ts";
import { takeLock } from "./host/lock.ts";
import { type InspectedHost, inspectHost } from "./inspect-host.ts";
import {
  Credits,
  DriveLevels,
  listOrgs,
  Meter,
  makeOperator,
  makeOrgs,
  makeQuota,
  plansOf,
  pricesOf,
} from "./orgs/index.ts";
import { makePorts } from "./ports/index.ts";
import { countAllRooms, countRooms, drivePlace, makeRoomFinder, makeRooms } from "./rooms/index.ts";
import { makeSandboxes, orgCids, orgSandboxes } from "./sandboxes/index.ts";
import { runChecks } from "./service/checks.ts";
import { makeService } from "./service/index.ts";
import { type Gateway, makeSsh } from "./ssh/index.ts";
import { buildTemplate, removeTemplate } from "./templates/build.ts";
import { makeTemplateList } from "./templates/list.ts";
import { makeTemplates, usableSnapshot } from "./templates/registry.ts";
import { sweepDeadTrials } from "./templates/trials.ts";
import { makeTerminals } from "./terminals/index.ts";

const STOP_GRACE_MS = 10_000;
/** How soon the disk's reserve grows again, and guests that stood still go on, once there is space. */
const RESTORE_MS = 1000;

const QUOTA = { type: "system", id: "quota", name: "quota" };

export interface ComposeOptions {
  config: Config;
  paths: Paths;
  log: Log;
}

export interface Daemon {
  url: string;
  /** Where the SSH gateway is, as host:port; null without one. */
  ssh: string | null;
  /** Answers what is under way and stops. Guests go on. */
  stop(): Promise<void>;
}

/** Starts the daemon; resolves once it takes requests. */
export async function startDaemon(options: ComposeOptions): Promise<Daemon> {
  const { config, paths, log } = options;
  const listen = planListen(config);
  const sshPlan = planSsh(config);
  const plans = plansOf(config);
  const rateLimits = { perSecond: config["limits.requests_per_second"], burst: config["limits.requests_at_once"] };
  let { url } = listen;
  makeDirectories(paths);
  const unlock = [takeLock(paths.daemon_lock, "runtime_dir"), takeLock(paths.data_lock, "data_dir")];
  const disk = new Disk(paths.data, {
    floor_mib: config["limits.disk_free_mib"],
    reserve_mib: config["limits.disk_reserve_mib"],
  });
  const giveUpSpace = () => disk.giveUp(true);
  const database = openDatabase(paths, (vital) => disk.giveUp(vital));
  const inspected = await inspectHost(config, paths, log);
  const templates = makeTemplates({
    paths,
    acceleration: () => inspected.findings.acceleration.acceleration,
    qemuVersion: inspected.findings.qemu_version,
    log,
  });
  const finder = makeRoomFinder(database, paths);
  const prices = pricesOf(config);
  const creditsGraceSeconds = config["billing.grace"];
  const meter = new Meter(database, prices);
  const credits = new Credits({
    database,
    log,
    meter,
    graceSeconds: creditsGraceSeconds,
    planCredits: (orgId) => orgQuota.capsOf(orgId).credits,
    endSandboxes: (orgId) => sandboxes.endRunning(orgId, "credits_exhausted"),
  });
  const orgs = makeOrgs({
    database,
    log,
    meter,
    roomName: finder.nameOf,
    credits: (orgId) => ({
      ...credits.balance(database.queries, orgId),
      warnings: credits.warnings(database.queries, orgId),
    }),
    standing: async (orgId) => ({
      ...(await orgQuota.standing(orgId)),
      guest_cids: { in_use: orgCids(database.queries, orgId), total: GUEST_CIDS },
    }),
  });
  const driveLevels = new DriveLevels({ database, log, meter, placeOf: drivePlace });
  const driveQuota = new ProjectQuota(inspected.findings.drive_quota, log);
  const drive = makeDrive({
    findRoom: finder.find,
    restraints: inspected.restraints,
    kernelUse: (directory) => driveQuota.use(directory),
    limitEntries: config["drive.limit_entries"],
    roomsOf: finder.ofOrg,
    keptOf: finder.keptOf,
    capsOf: (orgId) => orgQuota.capsOf(orgId).drive,
    onSoftExceeded: (org_id, facts) => {
      const details = { limit: "drive", ...facts };
      record({ event: "quota.soft_exceeded", outcome: "success", org_id, details, actor: QUOTA, source: "reconciler" });
    },
    sharesOf: (roomUid) => sandboxes.shares().flatMap((share) => (share.room_uid === roomUid ? share.process() : [])),
    giveUpSpace,
    onUsed: (roomUid, usedBytes) => driveLevels.note(roomUid as RoomUid, usedBytes),
    log,
  });
  const orgQuota = makeQuota({
    queries: database.queries,
    plans,
    held: (queries, orgId) => ({ rooms: countRooms(queries, orgId), ...orgSandboxes(queries, orgId) }),
    driveUsed: (orgId) => drive.measureOrg(orgId),
  });
  const limits = inspected.limits;
  const egressDefault = config["egress.default"];
  const pool = new WarmPool({
    size: config["pool.size"],
    paths,
    log,
    host: () => inspected.guestHost(),
    nextImage: () => usableSnapshot(templates, "default"),
  });
  /** Records what no call asked for. */
  const record = (entry: Omit<AuditEntry, "at">) => {
    database
      .commit((queries) => appendAudit(queries, { ...entry, at: now() }))
      .catch((error: unknown) => log.error("audit not written", { error: String(error) }));
  };
  const recordUnasked = (entry: Omit<AuditEntry, "at" | "actor" | "source">) => {
    const actor = { type: "system", id: "supervisor", name: "supervisor" };
    record({ ...entry, actor, source: "reconciler" });
  };
  const egress = makeEgress({
    database,
    log,
    meter,
    privateRanges: config["egress.private_ranges"],
    hostsFile: config["egress.hosts_file"],
    mibPerSecond: config["egress.mib_per_second"],
    onDenied: ({ sandbox_id, org_id, room_uid, room_id, agent_id }, denial) => {
      const actor = { type: "agent", id: agent_id, name: agent_id };
      const details = { ...denial };
      const about = { org_id, room_id, room_uid, agent_id, sandbox_id, details };
      record({ event: "egress.denied", outcome: "denied", ...about, actor, source: "vsock" });
    },
  });
  const bells = new Bells();
  const agents = new Agents({
    queries: database.queries,
    sandboxOf: (roomUid, agentId) => sandboxes.agents.agentOf(roomUid, agentId),
    liveSandboxes: (roomUid) => sandboxes.agents.liveAgents(roomUid),
  });
  const fabric = makeFabric({
    database,
    log,
    findRoom: finder.find,
    agents,
    bells,
    meter,
    ackMs: config["fabric.ack"] * 1000,
  });
  const barriers = makeBarriers({ database, findRoom: finder.find, agents, bells });
  const sandboxes = makeSandboxes({
    pool,
    database,
    log,
    meter,
    paths,
    templates,
    host: () => inspected.guestHost(),
    findRoom: finder.find,
    currentRoom: finder.current,
    quota: orgQuota,
    credits,
    limits,
    memoryOvercommitPercent: config["limits.memory_overcommit"],
    egressDefault,
    egress,
    roomCalls: (sandbox) => {
      let serve: ReturnType<ReturnType<typeof makeGuestDoor>> | undefined;
      return (stream, request) => {
        serve ??= guestDoor?.(sandbox);
        if (serve) serve(stream, request);
        else stream.fail(StreamErrorCode.internal, "the service is starting");
      };
    },
    driveMode: (roomUid) => drive.modeOf(roomUid),
    portsOf: (sandboxId) => ports.shown(sandboxId),
    saveOutput: (room, path, streams) => drive.saveStreams(room, path, streams),
    onEvent: (event, row, details, outcome = "error") => {
      const { org_id, room_uid, agent_id, sandbox_id } = row;
      recordUnasked({ event, outcome, org_id, room_uid, agent_id, sandbox_id, details });
    },
    onState: ({ room_uid, agent_id }) => {
      agents.changed(room_uid, agent_id);
      if (!agents.isGone(room_uid, agent_id)) return;
      barriers
        .agentGone(room_uid, agent_id)
        .catch((error: unknown) => log.error("barriers not broken", { error: describeError(error) }));
      // Whoever waits for the agent, or as it, looks again and sees that it is gone.
      bells.ringAll(room_uid);
    },
    onSwept: (sandbox_id) =>
      recordUnasked({ event: "sandbox.swept", outcome: "success", org_id: null, sandbox_id, details: {} }),
  });
  const terminals = makeTerminals({
    database,
    log,
    sandboxes: sandboxes.access,
    isCurrentKey: orgs.isCurrent,
    holdKey: orgs.holdKey,
    detachedLifeMs: config["terminal.detached_life"] * 1000,
  });
  const ports = makePorts({
    database,
    log,
    sandboxes: sandboxes.access,
    keyFile: paths.port_key,
    urls: () => ({ base_url: url, domain: listen.ports_domain }),
  });
  let gateway: Gateway | null = null;
  let guestDoor: ReturnType<typeof makeGuestDoor> | null = null;
  const ssh = makeSsh({ database, log, sandboxes: sandboxes.access, orgs, gateway: () => gateway });
  const driveLimitBytes = config["drive.limit_gib"] * 1024 ** 3;
  const retentionSeconds = config["drive.retention"];
  const rooms = makeRooms(
    {
      database,
      log,
      paths,
      quota: orgQuota,
      hostId: config.host_id,
      driveLimitBytes,
      driveLimitEntries: config["drive.limit_entries"],
      driveQuota,
      retentionSeconds,
      giveUpSpace,
      meter,
      driveRoot: (roomUid) => inspected.isolation.newDriveRoot(roomUid),
      drive,
      sandboxes,
      fabric: {
        endWaits: ({ room_id, room_uid }) =>
          bells.end(room_uid, new ServiceError("room_destroying", { detail: `Room ${room_id} is being destroyed.` })),
        forget: async (roomUid) => {
          await fabric.forget(roomUid);
          await database.commit((queries) => {
            agents.forget(queries, [roomUid]);
            barriers.forget(queries, [roomUid]);
          });
        },
      },
    },
    finder,
  );
  const quota = drive.watch({
    rooms: () => {
      const rooms = new Set(sandboxes.shares().map((share) => share.room_uid));
      return [...rooms].map((roomUid) => finder.current(roomUid));
    },
    onChange: ({ room_id, room_uid }, mode, { used_bytes, entry_count }) => {
      log.warn("drive quota", { room_id, mode, used_bytes, entry_count });
      const { org_id } = finder.current(room_uid as RoomUid);
      const written = database.commit((queries) =>
        appendAudit(queries, {
          event: `quota.drive_${mode}`,
          outcome: mode === "open" ? "success" : "denied",
          at: now(),
          org_id,
          room_id,
          room_uid,
          actor: QUOTA,
          source: "reconciler",
          details: {
            used_bytes,
            entry_count,
            limit_bytes: driveLimitBytes,
            limit_entries: config["drive.limit_entries"],
          },
        }),
      );
      written.catch((error: unknown) => log.error("audit not written", { error: String(error) }));
    },
  });
  const audit = makeAudit(
    {
      database,
      log,
      bells,
      slowReaderMs: config["events.slow_reader"] * 1000,
      findRoom: finder.find,
      findOrg: orgs.find,
    },
    {
      keepMs: config["audit.retention"] * 1000,
      heads: { file: headsFile(options), intervalMs: config["audit.heads_interval"] * 1000 },
    },
  );
  const requests = new RequestCounts();
  let commits = 0;
  database.onCommit(() => commits++);
  const service = makeService({
    paths,
    templates,
    findings: () => inspected.findings,
    capacity: sandboxes.capacity,
    figures: () => ({
      ...sandboxes.figures(),
      rooms: countAllRooms(database.queries),
      audit_records: countRecords(database.queries),
      commits,
    }),
    requests,
    limits,
    rateLimits,
    plans,
    prices,
    creditsGraceSeconds,
    driveLimitBytes,
    driveLimitEntries: config["drive.limit_entries"],
    disk: disk.state(),
    memoryOvercommitPercent: config["limits.memory_overcommit"],
    retentionSeconds,
    auditRetentionSeconds: config["audit.retention"],
    auditReads: config["audit.reads"],
    idempotentReplyBytes: MAX_REPLY_BYTES,
    egressDefault,
    terminalDetachedSeconds: config["terminal.detached_life"],
  });
  const bound = [
    ...service.operations,
    ...orgs.operations,
    ...rooms.operations,
    ...sandboxes.operations,
    ...terminals.operations,
    ...ports.operations,
    ...ssh.operations,
    ...drive.operations,
    ...fabric.operations,
    ...barriers.operations,
    ...makeTemplateList(templates),
    ...audit.operations,
  ];
  requireAll(bound);
  sandboxes.recover();
  ports.recover();
  await rooms.recover();
  await database.commit(releaseUnanswered);
  const certificate = await loadCertificate(config, paths);
  const road = makeRoad({
    authenticate: orgs.authenticate,
    holdKey: orgs.holdKey,
    requireSpace: ({ method, onFullDisk }) => {
      if (method === "GET" || method === "DELETE") return;
      if (onFullDisk) disk.requireRecord();
      else disk.requireSpace();
    },
    database,
    log,
    auditReads: config["audit.reads"],
    failedLoginsPerMinute: config["limits.failed_logins"],
    rateLimits,
    requests,
  });
  guestDoor = makeGuestDoor({
    operations: bound,
    answerer: (allowed) => makeDirect({ operations: allowed, road, log }),
    planOf: orgs.planOf,
    log,
  });
  const mcp = makeMcpDoor({ bound: new Map(bound.map((each) => [each.operation.name, each])), road, log });
  const server = makeHttpServer(
    { operations: bound, road, ports: ports.gate, mcp, log },
    { ...listen, tls: certificate },
  );
  const door = sshPlan && (await openSshDoor(sshPlan, paths, { ssh, road, log }));
  gateway = door?.gateway ?? null;
  const watch =
    certificate === null
      ? null
      : watchCertificate({ config, paths, log }, certificate, (renewed) => server.useCertificate(renewed));
  // Port 0 is whatever the system chose.
  credits.start(listOrgs(database.queries).map(({ org_id }) => org_id));
  fabric.start();
  barriers.start().catch((error: unknown) => log.error("barriers not broken", { error: describeError(error) }));
  if (listen.port === 0) url = server.url.href.replace(/\/$/, "");
  pool.refill();
  sweepDeadTrials(paths).catch((error: unknown) =>
    log.warn("remains of a template build not swept", { error: describeError(error) }),
  );
  const restoring = setInterval(() => {
    disk.restore();
    if (disk.hasSpace) sandboxes.unstall();
  }, RESTORE_MS);
  const stopReconciling = repeat(config["reconcile.interval"] * 1000, async () => {
    await inspected
      .lookAgain()
      .catch((error: unknown) => log.error("host not looked at again", { error: describeError(error) }));
    for (const noun of [sandboxes, rooms]) {
      await noun.reconcile().catch((error: unknown) => log.error("not reconciled", { error: describeError(error) }));
    }
    await meter.checkpoint().catch((error: unknown) => log.error("usage not written", { error: describeError(error) }));
  });
  log.info("ready", { url, acceleration: inspected.findings.acceleration.acceleration });
  return {
    url,
    ssh: gateway && `${gateway.host}:${gateway.port}`,
    stop: async () => {
      watch?.close();
      clearInterval(restoring);
      quota.stop();
      terminals.stop();
      ports.stop();
      stopReconciling();
      ssh.sessions.stop();
      await door?.stop();
      sandboxes.endStreams();
      fabric.stop();
      bells.close(new ServiceError("shutting_down", { retryAfterSeconds: 1 }));
      await Promise.all([mcp.stop(STOP_GRACE_MS), server.stop(STOP_GRACE_MS)]);
      road.stop();
      await orgs.stop();
      sandboxes.stop();
      await egress.stop();
      rooms.stop();
      credits.stop();
      await driveLevels.settle();
      await pool.close();
      inspected.close();
      await audit.stop();
      await database.close();
      disk.close();
      for (const release of unlock) release();
    },
  };
}

/** What operators do on the host itself; works beside a running daemon. */
export async function openOperator(options: ComposeOptions) {
  const { config, paths, log } = options;
  makeDirectories(paths);
  const database = openDatabase(paths);
  const operator = makeOperator(database, plansOf(config), requireBody);
  let inspected: InspectedHost | undefined;
  const inspect = async () => {
    inspected ??= await inspectHost(config, paths, log);
    return inspected;
  };
  const registry = async () => {
    const { findings } = await inspect();
    return makeTemplates({
      paths,
      acceleration: () => findings.acceleration.acceleration,
      qemuVersion: findings.qemu_version,
      log,
    });
  };
  return {
    ...operator,
    templates: {
      build: async (
        templateId: string,
        build: { recipeFile?: string | undefined; onProgress(line: string): void },
      ): Promise<TemplateRecord> => {
        const host = await inspect();
        return await buildTemplate(
          {
            paths,
            host: (): GuestHost => host.guestHost(),
            programs: host.programs,
            qemuVersion: host.findings.qemu_version,
            mirror: config["template.mirror"],
            limits: host.limits,
            probe: host.probe,
          },
          templateId,
          {
            recipe: build.recipeFile === undefined ? undefined : readFileSync(build.recipeFile, "utf8"),
            onProgress: build.onProgress,
          },
        );
      },
      list: async () => (await registry()).list().map(({ record }) => record),
      remove: (templateId: string) => removeTemplate(paths, templateId),
    },
    doctor: async () => runChecks((await inspect()).findings, await registry(), paths),
    listAudit: (query: Parameters<typeof listService>[1]) => listService(database.queries, query),
    /** By these files of heads too, besides the one of the configuration. */
    verifyAudit: (files: readonly string[] = []) =>
      verifyAll(database.queries, [...headsFilesOf(headsFile(options)), ...files]),
    close: async () => {
      inspected?.close();
      await database.close();
    },
  };
}

/** Opens the SSH door and says how it is found. */
async function openSshDoor(plan: SshPlan, paths: Paths, deps: Omit<ConnectionDeps, "limits">) {
  const hostKey = loadHostKey(paths.ssh_host_key);
  const listen = { ...plan, host_key: hostKey.privateKey };
  const { port, stop } = await startSshServer({ ...deps, limits: plan.limits }, listen);
  const gateway: Gateway = { ...plan.reachedAt(port), host_key_fingerprint: hostKey.fingerprint };
  return { gateway, stop };
}

function headsFile({ config, paths }: ComposeOptions): string {
  return config["audit.heads_file"] || paths.audit_heads;
}

function makeDirectories(paths: Paths): void {
  for (const directory of [paths.data, paths.templates, paths.rooms, paths.sandboxes, paths.runtime, paths.guests]) {
    crossedDirectory(directory);
  }
}

function openDatabase(paths: Paths, onFull?: (vital: boolean) => boolean): Database {
  // Its log and index get the same mode. The directory is one that others may cross.
  closeSync(openSync(paths.database, "a", 0o600));
  chmodSync(paths.database, 0o600);
  const connection = openConnection(paths.database);
  migrate(connection);
  return makeDatabase(connection, onFull);
}

/** Every operation of the list has its verb, and there is no other. */
function requireAll(bound: readonly Bound[]): void {
  const names = bound.map(({ operation }) => operation.name).sort();
  const wanted = Object.keys(operations).sort();
  if (names.join() !== wanted.join()) {
    throw new Error(`operations without a verb, or the reverse: ${names.join()} instead of ${wanted.join()}`);
  }
}

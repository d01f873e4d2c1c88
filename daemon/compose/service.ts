/** Composition of reports about the service as a whole: the audit, and health, limits and figures. */

import { statSync } from "node:fs";
import type { RequestCounts } from "../core/call/request-counts.ts";
import { cachedByCost } from "../core/concurrency/cost-cache.ts";
import type { Notifier } from "../core/concurrency/notifier.ts";
import { endForDisk } from "../core/disk-failure.ts";
import { Histogram } from "../core/histogram.ts";
import type { LogCounts } from "../core/log.ts";
import { loopFigures } from "../core/loop/index.ts";
import { countRecords, makeAudit } from "../domain/audit/index.ts";
import type { Backups } from "../domain/backups/index.ts";
import type { Egress } from "../domain/egress/index.ts";
import type { Plans } from "../domain/orgs/index.ts";
import { countAllRooms } from "../domain/rooms/index.ts";
import type { Sandboxes } from "../domain/sandboxes/index.ts";
import { listQuarantined, type SandboxRow, shutdownPlanOf } from "../domain/sandboxes/index.ts";
import type { ShutdownFindings } from "../domain/service/checks.ts";
import { makeService } from "../domain/service/index.ts";
import type { Gateway } from "../domain/ssh/deps.ts";
import { findPasskeys } from "../domain/users/index.ts";
import type { Webhooks } from "../domain/webhooks/index.ts";
import type { HostClient } from "../edge/hosts/client.ts";
import { PeerClient } from "../edge/hosts/room-transfer.ts";
import { MAX_REPLY_BYTES } from "../edge/pipeline/idempotency-answers.ts";
import type { WarmPool } from "../host/guest/pool.ts";
import { hasSystemd } from "../host/system-service.ts";
import type { Addresses } from "./addresses.ts";
import type { Base, ComposeOptions } from "./base.ts";
import type { Drives } from "./drives.ts";
import { hostStates, listedHosts } from "./hosts.ts";
import { composeLookups } from "./lookups.ts";
import type { Orgs } from "./orgs.ts";
import type { AllRates } from "./rate-limits.ts";

export function composeAudit(base: Base, { orgs }: Orgs, bells: Notifier, client: HostClient | null) {
  const { config, paths, log, database, reads, finder, directory } = base;
  const peers = client && new PeerClient(client);
  return makeAudit(
    {
      database,
      reads,
      log,
      bells,
      anchors: base.cluster?.anchors ?? null,
      others: peers && {
        joinedAt: (hostId) => memberOf(directory, hostId)?.joined_at ?? null,
        lostHeads: async (hostId, ...request) => {
          const host = memberOf(directory, hostId);
          return host ? await peers.lostHeads(host, ...request) : [];
        },
      },
      slowReaderMs: config["events.slow_reader"] * 1000,
      findRoom: finder.find,
      findOrg: orgs.find,
    },
    {
      keepMs: config["audit.retention"] * 1000,
      heads: { file: headsFile(base), intervalMs: config["audit.heads_interval"] * 1000, onLost: endForDisk },
      file: paths.database,
      perDay: config["audit.records_per_day"],
      countedMs: config["audit.counted_interval"] * 1000,
    },
  );
}

function memberOf(directory: Base["directory"], hostId: string) {
  const host = directory.host(hostId);
  return host?.state === "gone" ? null : host;
}

export function headsFile({ config, paths }: ComposeOptions): string {
  return config["audit.heads_file"] || paths.audit_heads;
}

/** A fast disk takes a fraction of a millisecond; a disk shared with busy guests takes seconds. */
const FLUSH_BOUNDS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Size of the database, including its log. */
function sizeOf(database: string): number {
  const files = [database, `${database}-wal`];
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}

/** The effect of a host shutdown, for the checks; null if it saves no sandboxes. */
export function shutdownFindings(
  { config, paths, database }: Pick<Base, "config" | "paths" | "database">,
  spareBytes: number,
  nameOf: (row: SandboxRow) => string,
  recordOf?: Sandboxes["recordOf"],
): ShutdownFindings | null {
  if (!config["hibernate.on_shutdown"]) return null;
  const { saved, lost, needs_bytes } = shutdownPlanOf(database.queries, paths, spareBytes, recordOf);
  return {
    is_told: hasSystemd(),
    saved: saved.length,
    needs_bytes,
    spare_bytes: spareBytes,
    lost: lost.map(({ row, ...about }) => ({ name: nameOf(row), ...about })),
  };
}

interface ServiceFacts extends Pick<Orgs, "prices" | "graceSeconds" | "meter"> {
  plans: Plans;
  addresses: Addresses;
  rates: AllRates;
  requests: RequestCounts;
  sandboxes: Sandboxes;
  agents: Parameters<typeof composeLookups>[1];
  backups: Backups;
  /** Chains of the audit that lack an anchored record; null: unknown. */
  chainsLost(): number | null;
  webhooks: Pick<Webhooks, "has" | "figures">;
  drives: Drives;
  egress: Pick<Egress, "figures">;
  pool: Pick<WarmPool, "figures">;
  logged: LogCounts;
  loopDelays: Histogram;
}

function shownGateway(gateway: Gateway | null) {
  if (gateway === null) return null;
  const { host, port, host_key, host_key_fingerprint: fingerprint } = gateway;
  return { address: `${host.includes(":") ? `[${host}]` : host}:${port}`, host_key, fingerprint };
}

export function composeService(base: Base, facts: ServiceFacts) {
  const { config, paths, database, disk, inspected, templates, finder } = base;
  const { addresses, sandboxes, drives, egress, pool } = facts;
  const flushes = new Histogram(FLUSH_BOUNDS_SECONDS);
  database.onCommit((flushMs) => flushes.note(flushMs / 1000));
  return makeService({
    hosts: () => listedHosts(base, sandboxes, addresses),
    hostStates: () => hostStates(base),
    betweenHosts: base.betweenHosts,
    directoryAgeSeconds: () => base.cluster?.behindSeconds() ?? 0,
    paths,
    templates,
    findings: () => inspected.findings,
    sandboxes: () => ({
      quarantined: listQuarantined(database.queries),
      awaited: sandboxes.awaited(),
      // Every key holder sees the checks, so they must not contain names of other organizations' agents.
      shutdown: shutdownFindings(base, disk.spare_bytes, ({ sandbox_id }) => sandbox_id, sandboxes.recordOf),
    }),
    backups: facts.backups.figures,
    anchors: () => (base.cluster ? { lost: facts.chainsLost() } : null),
    threads: () => ({
      readers: { is_degraded: base.reads.isDegraded },
      aside: { is_degraded: base.aside.isDegraded },
    }),
    clock: () => (base.cluster ? { ahead_ms: base.cluster.clockAheadMs() } : null),
    membership: () => base.cluster && { is_member: base.cluster.isMember(), has_followed: base.cluster.hasFollowed() },
    directory: () =>
      base.cluster && {
        ...base.cluster.serverSettings(),
        // The names of unfit rows are omitted: they may concern other organizations than the caller's.
        unfit: { rows: base.cluster.unfitRows().rows, named: [] },
      },
    passkeys: () => (config["web.enabled"] ? findPasskeys(database.queries, addresses.url) : null),
    // Scans all sandboxes, for every caller of health or figures.
    capacity: cachedByCost(sandboxes.capacity),
    measure: sandboxes.measure,
    findRoom: finder.find,
    roomUidOf: (orgId, roomId) => finder.lookup(orgId, roomId)?.room_uid,
    lookups: composeLookups(base, facts.agents, facts.webhooks),
    figures: () => ({
      ...sandboxes.figures(),
      rooms: countAllRooms(database.queries),
      audit_records: countRecords(database.queries),
      happened: facts.meter.happened,
      egress: egress.figures(),
      webhooks: facts.webhooks.figures(),
      traces: base.tracing.figures(),
      pool: pool.figures(),
      disk: disk.state(),
      database: { bytes: sizeOf(paths.database), flushes },
      logged: facts.logged,
      loopDelays: facts.loopDelays,
    }),
    loop: loopFigures,
    requests: facts.requests,
    limits: inspected.limits,
    rates: facts.rates,
    plans: facts.plans,
    prices: facts.prices,
    creditsGraceSeconds: facts.graceSeconds,
    driveLimitBytes: drives.limits.bytes,
    driveLimitEntries: drives.limits.entries,
    disk: disk.state(),
    memoryOvercommitPercent: config["limits.memory_overcommit"],
    retentionSeconds: config["drive.retention"],
    auditRetentionSeconds: config["audit.retention"],
    auditReads: config["audit.reads"],
    auditRecordsPerDay: config["audit.records_per_day"],
    idempotentReplyBytes: MAX_REPLY_BYTES,
    messageKeptBytes: config["fabric.kept_mib"] * 1024 ** 2,
    egressDefault: config["egress.default"],
    terminalDetachedSeconds: config["terminal.detached_life"],
    ssh: () => shownGateway(addresses.gateway),
  });
}

/**
 * Composition root of the daemon: makes its parts bottom-up, adopts the state that the previous daemon left, and opens the transports; at
 * the end all of that is undone. The composition of each part is a file in this folder. A lower part calls a higher one only by a listener
 * that is registered here.
 */
import { operations } from "../../shared/api/operations.ts";
import type { OrgId } from "../../shared/ids.ts";
import { InFlightCalls } from "../core/call/in-flight-calls.ts";
import type { Bound } from "../core/call/operation.ts";
import { RequestCounts } from "../core/call/request-counts.ts";
import { peopleUrl } from "../core/config/people-url.ts";
import { countLog } from "../core/log.ts";
import { loopTime, recordTurns, watchLoop } from "../core/loop/index.ts";
import { watchLoopDelay } from "../core/loop/loop-delay.ts";
import { makeBackups, planBackups } from "../domain/backups/index.ts";
import { planBilling } from "../domain/billing/index.ts";
import { listOrgs, Meter, makeCaps, plansOf, pricesOf, roomCosts } from "../domain/orgs/index.ts";
import { makeOverview } from "../domain/overview/index.ts";
import { checkpointBytes } from "../domain/rooms/index.ts";
import { snapshotBytes } from "../domain/sandboxes/index.ts";
import { makeTemplateList } from "../domain/templates/list.ts";
import { planTraces } from "../domain/traces/index.ts";
import { planSsrfGuard } from "../domain/webhooks/index.ts";
import { GuestCalls } from "../edge/guest/guest-calls.ts";
import { planListen } from "../edge/http/tls.ts";
import { makeLive } from "../edge/live/index.ts";
import { makeIdempotencyStore } from "../edge/pipeline/idempotency-step.ts";
import { planSsh } from "../edge/ssh/plan.ts";
import { threadTime } from "../host/thread-time.ts";
import type { Addresses } from "./addresses.ts";
import { composeAgents } from "./agents.ts";
import { backUpApart } from "./backup-process.ts";
import { type ComposeOptions, openBase } from "./base.ts";
import { composeBilling } from "./billing.ts";
import { composeDrives } from "./drives.ts";
import { composePeers, followOthers } from "./hosts.ts";
import { composeOAuth } from "./oauth.ts";
import { composeOrgTemplates } from "./org-templates.ts";
import { composeOrgs } from "./orgs.ts";
import { ratesOf } from "./rate-limits.ts";
import { composeRooms } from "./rooms.ts";
import { composeSandboxes } from "./sandboxes.ts";
import { composeAudit, composeService } from "./service.ts";
import { openDoors } from "./transports.ts";
import { startUpkeep } from "./upkeep.ts";
import { composeWebhooks } from "./webhooks.ts";

export interface Daemon {
  url: string;
  /** Address of the SSH gateway, as host:port; null without one. */
  ssh: string | null;
  /** Resolves when the daemon is ready: sandboxes saved at the host's shutdown are resumed, or could not be, or take too long. */
  ready: Promise<void>;
  /** Completes calls in progress and stops. Guests keep running, unless all are to `hibernate`, because the host is shut down. */
  stop(options?: { hibernate: boolean }): Promise<void>;
}

/** Starts the daemon; resolves once it accepts requests, possibly before it is ready. */
export async function startDaemon(options: ComposeOptions): Promise<Daemon> {
  const { config } = options;
  const { log, counts: logged } = countLog(options.log);
  // Configuration errors are reported before anything is opened.
  const listen = planListen(config);
  const sshPlan = planSsh(config);
  const plans = plansOf(config);
  const rates = ratesOf(config);
  const billingPlan = planBilling(config);
  const webhookReach = planSsrfGuard(config);
  const tracesPlan = planTraces(config);
  const backupPlan = planBackups(config);

  const base = await openBase({ ...options, log }, tracesPlan);
  loopTime.measureBy(threadTime);
  const loop = watchLoopDelay();
  const { database, inspected } = base;
  const { queries } = database;
  const addresses: Addresses = { url: listen.url, gateway: null };
  const urlForPeople = () => peopleUrl(addresses.url);
  const roomCalls = new InFlightCalls();
  const answers = makeIdempotencyStore(database);
  const guestCalls = new GuestCalls();
  const peers = await composePeers(base);
  const prices = pricesOf(config);
  const meter = new Meter(database, prices);
  const drives = composeDrives(base, { meter, capsOf: makeCaps(queries, plans) });
  const driveUsed = async (orgId: OrgId) =>
    (await drives.drive.measureOrg(orgId)) + snapshotBytes(queries, orgId) + checkpointBytes(queries, orgId);
  const orgs = composeOrgs(base, { plans, prices, meter, driveUsed, url: urlForPeople });
  const agents = composeAgents(base, meter);
  const { sandboxes, pool, processors, egress, terminals, screens, ports, ssh } = composeSandboxes(base, {
    rates,
    ...orgs,
    ...drives,
    agentChanged: agents.changed,
    commandsChanged: (roomUid) => agents.changes.changed(roomUid),
    driveUsed,
    portsDomain: listen.ports_domain,
    addresses,
    guestCalls,
  });
  orgs.credits.onExhausted((orgId) => sandboxes.endRunning(orgId, "credits_exhausted"));
  agents.onDelivered(sandboxes.messageCame);
  const audit = composeAudit(base, orgs, agents.bells, peers?.client ?? null);
  const rooms = composeRooms(base, {
    ...orgs,
    ...drives,
    sandboxes,
    agents,
    callsBranch: answers.branch,
    client: peers?.client ?? null,
    ports,
    calls: roomCalls,
    audit: { anchor: () => void audit.anchor(), endRoom: audit.endRoom },
  });
  const quotaWatch = drives.watch(sandboxes.shares);
  const webhooks = composeWebhooks(base, orgs, audit.chains, webhookReach);
  const overview = makeOverview(
    {
      queries: database.queries,
      reads: base.reads,
      findRoom: base.finder.find,
      agents: agents.agents,
      sandboxes,
      rooms,
      messagesLately: agents.messagesLately,
      trace_url: base.tracing.trace_url,
      costs: (orgId) => roomCosts(database.queries, orgs.meter, orgs.prices, orgId),
    },
    agents.changes,
  );
  const live = makeLive({ hold: orgs.hold });
  const orgTemplates = composeOrgTemplates(base, orgs);
  const requests = new RequestCounts();
  const oauth = composeOAuth(base, orgs, urlForPeople);
  const billing = composeBilling(base, orgs, plans, billingPlan, urlForPeople);
  const backups = makeBackups({
    plan: backupPlan,
    log,
    stateFile: base.paths.backup_state,
    make: (signal) => backUpApart(config, signal),
  });
  const service = composeService(base, {
    backups,
    chainsLost: audit.chainsLost,
    addresses,
    agents: agents.sandboxes,
    ...orgs,
    plans,
    rates,
    requests,
    sandboxes,
    webhooks,
    drives,
    egress,
    pool,
    logged,
    loopDelays: loop.delays,
  });
  const bound = [
    service,
    orgs.orgs,
    orgs.users,
    billing,
    oauth,
    rooms,
    sandboxes,
    terminals,
    screens,
    ports,
    ssh,
    drives.drive,
    agents,
    { operations: makeTemplateList(base.templates) },
    orgTemplates,
    audit,
    webhooks,
    overview,
    live,
  ].flatMap((part) => part.operations);
  requireAll(bound);

  await agents.recover();
  await followOthers(base, sandboxes, orgs.held, addresses);
  const answering = Promise.withResolvers<void>();
  await sandboxes.recover(answering.promise);
  ports.recover();
  await rooms.recover(answering.promise);
  await orgTemplates.recover();
  const doors = await openDoors(
    base,
    {
      operations: bound,
      orgs: orgs.orgs,
      users: orgs.users,
      hold: orgs.hold,
      oauth,
      billing,
      ports,
      ssh,
      rooms,
      roomCalls,
      listen,
      sshPlan,
      rates,
      requests,
      chains: audit.chains,
      answers,
      guestCalls,
      peers,
    },
    addresses,
  );
  answering.resolve();
  orgs.credits.start(listOrgs(database.queries).map(({ org_id }) => org_id));
  agents.start();
  // Sandboxes that ran before take precedence over pool machines.
  const ready = sandboxes.returned().then(() => {
    pool.refill();
    log.info("ready", { url: addresses.url, acceleration: inspected.findings.acceleration.acceleration });
  });
  const stopEnding = orgs.users.keepEnding(async (orgId) => {
    await rooms.endAll(orgId);
    await billing.endOrg(orgId);
    await webhooks.forgetOrg(orgId);
    await orgTemplates.forgetOrg(orgId);
  });
  const stopMail = orgs.outbox.start();
  const stopBilling = billing.start();
  const stopWebhooks = webhooks.start();
  backups.start();
  // Started last: synchronous work during startup delays no client.
  const watch = watchLoop(loopTime, log, config["log.level"]);
  const endRecord = recordTurns(loopTime, threadTime, process.env);
  const upkeep = startUpkeep(base, { sandboxes, rooms, meter: orgs.meter, oauth, changes: orgs.changes, pool });

  return {
    url: addresses.url,
    ssh: addresses.gateway && `${addresses.gateway.host}:${addresses.gateway.port}`,
    ready,
    stop: async ({ hibernate } = { hibernate: false }) => {
      sandboxes.endReturn();
      await backups.stop();
      const unsaved = processors.stop();
      loop.stop();
      watch.stop();
      endRecord();
      upkeep.stop();
      stopEnding();
      quotaWatch.stop();
      terminals.stop();
      live.stop();
      await screens.stop();
      ports.stop();
      await stopBilling();
      await stopWebhooks();
      await orgTemplates.stop();
      await doors.stopSsh();
      sandboxes.endStreams();
      agents.stop();
      await doors.stop();
      // No calls arrive any more, and answered clients may rely on their results.
      if (hibernate) await sandboxes.hibernateAll(base.disk.spare_bytes);
      await stopMail();
      await orgs.orgs.stop();
      sandboxes.stop();
      await egress.stop();
      rooms.stop();
      orgs.credits.stop();
      await drives.levels.settle();
      await unsaved;
      await pool.close();
      inspected.close();
      await audit.stop();
      await base.close();
    },
  };
}

/** Throws unless exactly the operations of the contract have a verb. */
function requireAll(bound: readonly Bound[]): void {
  const names = bound.map(({ operation }) => operation.name).sort();
  const expected = Object.keys(operations).sort();
  if (names.join() !== expected.join()) {
    throw new Error(`operations without a verb, or the reverse: ${names.join()} instead of ${expected.join()}`);
  }
}

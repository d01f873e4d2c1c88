/** The request pipeline and its transports, from opening to the end of the last client. */
import type { InFlightCalls } from "../core/call/in-flight-calls.ts";
import type { Bound } from "../core/call/operation.ts";
import type { RequestCounts } from "../core/call/request-counts.ts";
import type { Certificate } from "../core/config/certificate.ts";
import type { Paths } from "../core/config/paths.ts";
import { peopleUrl } from "../core/config/people-url.ts";
import { appendAudit, type Chains, lostHeads } from "../domain/audit/index.ts";
import type { Billing } from "../domain/billing/index.ts";
import type { OAuth } from "../domain/oauth/index.ts";
import type { Orgs } from "../domain/orgs/index.ts";
import type { Ports } from "../domain/ports/index.ts";
import type { Rooms } from "../domain/rooms/index.ts";
import type { Gateway } from "../domain/ssh/deps.ts";
import type { Ssh } from "../domain/ssh/index.ts";
import { requireProof, type Users } from "../domain/users/index.ts";
import { makeGuestDoor } from "../edge/guest/door.ts";
import type { GuestCalls } from "../edge/guest/guest-calls.ts";
import type { HostClient } from "../edge/hosts/client.ts";
import { Locator, PORTS, SSH_ACCESSES } from "../edge/hosts/locator.ts";
import { ClusterPlacement } from "../edge/hosts/placement.ts";
import { makeDirect } from "../edge/http/other-transports.ts";
import { type HttpServer, makeHttpServer } from "../edge/http/server.ts";
import { loadCertificate, type planListen } from "../edge/http/tls.ts";
import { watchCertificate } from "../edge/http/tls-watch.ts";
import { makeMcpDoor } from "../edge/mcp/door.ts";
import { warmUp } from "../edge/mcp/warm-up.ts";
import type { Hold } from "../edge/pipeline/call-lifetime.ts";
import type { IdempotencyStore } from "../edge/pipeline/idempotency-step.ts";
import { makePipeline } from "../edge/pipeline/pipeline.ts";
import { type Placement, standalone } from "../edge/pipeline/placement.ts";
import { Gather } from "../edge/scatter-gather/gather.ts";
import { gathered } from "../edge/scatter-gather/rules.ts";
import type { ConnectionDeps } from "../edge/ssh/connection.ts";
import { loadHostKey } from "../edge/ssh/host-key.ts";
import { startSshServer } from "../edge/ssh/listener.ts";
import type { SshPlan } from "../edge/ssh/plan.ts";
import { makeWebDoor } from "../edge/web/door.ts";
import type { Addresses } from "./addresses.ts";
import type { Base } from "./base.ts";
import { planCluster } from "./cluster.ts";
import type { AllRates } from "./rate-limits.ts";

const STOP_GRACE_MS = 10_000;

interface DoorParts {
  operations: readonly Bound[];
  orgs: Orgs;
  users: Users;
  hold: Hold;
  oauth: OAuth;
  billing: Billing;
  ports: Ports;
  ssh: Ssh;
  rooms: Pick<Rooms, "forPeers" | "isComing">;
  roomCalls: InFlightCalls;
  listen: ReturnType<typeof planListen>;
  sshPlan: SshPlan | null;
  rates: AllRates;
  requests: RequestCounts;
  chains: Chains;
  answers: IdempotencyStore;
  guestCalls: GuestCalls;
  /** Connections to other hosts; null: a standalone host. */
  peers: { own: Certificate; client: HostClient } | null;
}

/** Nearly every request of a browser needs it, and it changes once, when the port is known. */
function urlForPeople(addresses: Addresses): () => string {
  let known = { of: "", url: "" };
  return () => {
    if (known.of !== addresses.url) known = { of: addresses.url, url: peopleUrl(addresses.url) };
    return known.url;
  };
}

/** Opens all of them; sets their addresses. */
export async function openDoors(base: Base, parts: DoorParts, addresses: Addresses) {
  const { config, paths, log, aside, hostId: host } = base;
  const { operations, orgs, ports, ssh, listen, sshPlan } = parts;
  const certificate = await loadCertificate(config, paths);
  const pipeline = composeRoad(base, parts);
  parts.guestCalls.open(
    makeGuestDoor({
      formerNames: base.finder.formerNames,
      answer: makeDirect({ operations, road: pipeline, aside, host, others: null, peers: null, ssh: null, log }),
      planOf: orgs.planOf,
      log,
    }),
  );
  const { traces } = base.tracing;
  const others = parts.peers?.client ?? null;
  const { cluster } = base;
  const whereabouts = (question: typeof PORTS) =>
    others && cluster && new Locator({ question, client: others, own: host, others: cluster.others });
  const labels = whereabouts(PORTS);
  await warmUp();
  const mcp = makeMcpDoor({
    others: others && { client: others, own: host },
    traces,
    bound: new Map(operations.map((each) => [each.operation.name, each])),
    road: pipeline,
    aside,
    log,
    record: (entry) => {
      const written = base.database.commit((queries) => appendAudit(queries, entry), false);
      written.catch((error: unknown) => log.error("failed to write an audit record", { error: String(error) }));
    },
  });
  const web = config["web.enabled"]
    ? makeWebDoor({
        road: pipeline,
        operations,
        users: parts.users,
        oauth: parts.oauth,
        billing: parts.billing,
        clients: {
          registration: config["oauth.registration"],
          perHour: config["oauth.registrations"],
          documents: config["oauth.documents"],
        },
        letters: { perHour: config["signup.per_hour"], perDay: config["signup.per_day"] },
        orgName: orgs.nameOf,
        url: urlForPeople(addresses),
        hasHosts: () => (cluster?.others().length ?? 0) > 0,
        log,
      })
    : null;
  const noSsh = base.inspected.findings.ssh;
  if (sshPlan && noSsh !== null) log.error("failed to open the SSH gateway", { error: noSsh });
  const sshOthers = othersOf(base, ssh, others, whereabouts(SSH_ACCESSES));
  const sshDoor =
    sshPlan && noSsh === null
      ? await openSshDoor(sshPlan, paths, { ssh, road: pipeline, log, others: sshOthers })
      : null;
  addresses.gateway = sshDoor?.gateway ?? null;
  const server = makeHttpServer(
    {
      ...{ operations, road: pipeline, aside, ports: ports.gate, mcp, web, host, others, labels, log },
      peers: others && {
        ...parts.rooms.forPeers,
        lostHeads: (orgId, heads, over) => lostHeads(base.database, orgId, heads, over),
      },
      ssh: others && { has: ssh.hasAccess, take: sshDoor?.take ?? null },
    },
    { ...listen, tls: certificate },
  );
  const members = parts.peers && serveMembers(base, server, parts.peers);
  // For port 0, the system chose the port.
  if (listen.port === 0) addresses.url = server.url.href.replace(/\/$/, "");
  const watch =
    certificate === null
      ? null
      : watchCertificate({ config, paths, log }, certificate, (renewed) => server.useCertificate(renewed));
  return {
    /** Stops accepting SSH connections, and ends the existing ones. */
    stopSsh: async () => {
      watch?.close();
      ssh.sessions.stop();
      await sshDoor?.stop();
    },
    /** Completes calls in progress. */
    stop: async () => {
      await Promise.all([mcp.stop(STOP_GRACE_MS), server.stop(STOP_GRACE_MS), members?.stop(STOP_GRACE_MS)]);
      others?.close();
      pipeline.stop();
    },
  };
}

/** Accepts connections of the other hosts, as they join and leave. */
function serveMembers(
  { config, cluster, hostId }: Base,
  server: HttpServer,
  { own, client }: NonNullable<DoorParts["peers"]>,
) {
  const plan = planCluster(config);
  if (!cluster || !plan) return null;
  const others = () => cluster.hosts().filter(({ host_id, state }) => host_id !== hostId && state !== "gone");
  const certificates = () => others().map(({ certificate }) => certificate);
  const members = server.serveMembers(plan.listen, { own, members: certificates() });
  cluster.onChange(() => {
    members.admit(certificates());
    client.keepOnly(others());
  });
  return members;
}

function composeRoad(base: Base, parts: DoorParts) {
  const { config, log, database, disk, tracing } = base;
  const { orgs, hold, oauth, rates, requests, answers } = parts;
  return makePipeline({
    authenticate: (authorization, source, access) =>
      authorization !== null && oauth.isToken(authorization)
        ? oauth.authenticate(authorization, source)
        : orgs.authenticate(authorization, access),
    hold,
    requireSpace: ({ method, onFullDisk }) => {
      if (method === "GET" || method === "DELETE") return;
      if (onFullDisk) disk.requireRecord();
      else disk.requireSpace();
    },
    database,
    log,
    requireProof,
    auditReads: config["audit.reads"],
    failedLoginsPerMinute: config["limits.failed_logins"],
    rates,
    requests,
    answers,
    traces: tracing.traces,
    placement: composePlacement(base, parts),
  });
}

function composePlacement(
  { config, log, database, cluster, hostId: own }: Base,
  { rooms, roomCalls: calls, chains }: DoorParts,
): Placement {
  if (!cluster) return standalone(own);
  return new ClusterPlacement({
    ...{ own, queries: database.queries, cluster, calls, isComing: rooms.isComing },
    staleAfterSeconds: config["cluster.stale_after"],
    gather: new Gather({
      ...{ own, rules: gathered, directory: cluster, chains, log },
      slowReaderMs: config["events.slow_reader"] * 1000,
    }),
  });
}

function othersOf(
  { cluster }: Base,
  ssh: Ssh,
  client: HostClient | null,
  accesses: Locator | null,
): ConnectionDeps["others"] {
  if (!cluster || !client || !accesses) return null;
  return {
    client,
    elsewhere: cluster.elsewhere,
    hostOfAccess: async (password) => {
      const hash = ssh.accessHash(password);
      return hash === null ? null : await accesses.hostOf(hash);
    },
    gatewayOf: (hostId) => cluster.loadOf(hostId)?.ssh ?? null,
  };
}

/** Opens the SSH server and publishes its address. */
async function openSshDoor(plan: SshPlan, paths: Paths, deps: Omit<ConnectionDeps, "limits">) {
  const hostKey = loadHostKey(paths.ssh_host_key);
  const listen = { ...plan, host_key: hostKey.privateKey };
  const { port, stop, take } = await startSshServer({ ...deps, limits: plan.limits }, listen);
  const gateway: Gateway = {
    ...plan.reachedAt(port),
    host_key: hostKey.publicKey,
    host_key_fingerprint: hostKey.fingerprint,
  };
  return { gateway, stop, take };
}

/** Cluster mode of this host: its configuration, its directory, and its own entry for the peers. */
import { isIP } from "node:net";
import { VERSION } from "../../shared/version.ts";
import { memberFile, readMembership } from "../cluster/member-file.ts";
import type { Cluster } from "../cluster/postgres.ts";
import type { Recovered } from "../cluster/recovered.ts";
import type { LostName } from "../cluster/self-sync.ts";
import type { HostRow } from "../cluster/table.ts";
import type { CallStats } from "../core/call/call-stats.ts";
import { now } from "../core/clock.ts";
import { type Config, ConfigError } from "../core/config/config.ts";
import { parseListen, WILDCARDS } from "../core/config/listen.ts";
import type { Paths } from "../core/config/paths.ts";
import { secretIn } from "../core/config/secret-file.ts";
import type { Log } from "../core/log.ts";
import type { Queries } from "../db/client.ts";
import type { LocalDatabase } from "../db/transact.ts";
import { appendAudit, appendAudits } from "../domain/audit/index.ts";
import { planListen } from "../edge/http/tls.ts";
import { systemActor } from "./records.ts";

export interface ClusterPlan {
  /** URL of the PostgreSQL database that hosts share. */
  url: string;
  listen: { hostname: string; port: number };
  /** This host's entry for the other hosts. */
  self: Pick<HostRow, "address" | "url" | "labels">;
}

/** Null: a standalone host. Throws ConfigError. */
export function planCluster(config: Config): ClusterPlan | null {
  if (config["cluster.url"] === "") return null;
  const url = urlWithPassword(config);
  const listen = parseListen("cluster.listen", config["cluster.listen"], "10.0.0.1:7443");
  const given = config["cluster.address"];
  if (given === "" && WILDCARDS.has(listen.hostname)) {
    throw new ConfigError(
      `cluster.listen = ${JSON.stringify(config["cluster.listen"])} is a wildcard: set cluster.address to the address by which the other hosts reach this host`,
    );
  }
  const reached = given === "" ? listen : parseListen("cluster.address", given, "host-1.internal:7443");
  const host = isIP(reached.hostname) === 6 ? `[${reached.hostname}]` : reached.hostname;
  return {
    url,
    listen,
    self: {
      address: `${host}:${reached.port}`,
      url: planListen(config).url,
      labels: labelsOf(config["cluster.labels"]),
    },
  };
}

/** The configured URL, with the password from the password file. Throws ConfigError. */
function urlWithPassword(config: Config): string {
  const url = config["cluster.url"];
  const password = secretIn(config, "cluster.password_file");
  if (password === null) return url;
  const [, before, user, rest] = /^([^/]*\/\/)([^/?#@:]+)@(.*)$/s.exec(url) ?? [];
  if (user === undefined) {
    throw new ConfigError(
      "with cluster.password_file cluster.url must name a user and no password: postgres://USER@HOST/DATABASE",
    );
  }
  return `${before}${user}:${encodeURIComponent(password)}@${rest}`;
}

function labelsOf(text: string): Record<string, string> {
  const pairs = text.split(",").flatMap((each) => each.trim() || []);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, name, value] = /^([A-Za-z0-9][\w.-]{0,62})=([\w.-]{0,63})$/.exec(pair) ?? [];
      if (name === undefined || value === undefined) {
        throw new ConfigError(`cluster.labels: ${JSON.stringify(pair)} must be NAME=VALUE, such as zone=a`);
      }
      return [name, value];
    }),
  );
}

interface OpenService {
  config: Config;
  paths: Paths;
  log: Log;
  database: LocalDatabase;
  /** How rounds go. */
  tally: CallStats;
}

/** Throws ConfigError if the data are a restored backup of a member, which no operator has confirmed. */
export function requireConfirmed({ cluster }: Pick<Paths, "cluster">): void {
  if (readMembership(cluster)?.was === undefined) return;
  throw new ConfigError(
    "this host's data was restored from a backup, and the daemon it was taken from may still run: stop that daemon, and run `roomd cluster rejoin`",
  );
}

/** The directory of a host that is a member; null for a standalone one. Throws ConfigError if it has not joined. */
export async function openCluster(
  { config, paths, log, database, tally }: OpenService,
  hostId: string,
): Promise<Cluster | null> {
  const plan = planCluster(config);
  const member = readMembership(paths.cluster);
  if (!plan) {
    if (!member) return null;
    throw new ConfigError(
      "this host is a member of a service of several hosts, and cluster.url is empty: set it to the database that they share",
    );
  }
  if (!member) {
    throw new ConfigError(
      "cluster.url is set, and this host is not a member: run `roomd cluster init` on the first host, `roomd cluster join TOKEN` on the others",
    );
  }
  if (member.host_id !== hostId) {
    throw new ConfigError(`this host joined as ${member.host_id}, and is now called ${hostId}: restore host_id`);
  }
  // Its driver is loaded only on hosts of a cluster.
  const { makePostgres } = await import("../cluster/postgres.ts");
  const { newMembershipLock } = await import("../cluster/membership-lock.ts");
  const holder = newMembershipLock(memberFile(paths.cluster));
  const { self, url } = plan;
  return makePostgres({
    url,
    database,
    member,
    self,
    version: VERSION,
    holder,
    recovered,
    putAgain,
    nameLost,
    tally,
    log,
  });
}

const BY_CLUSTER = { actor: systemActor("cluster"), source: "reconciler", outcome: "success" } as const;

const recovered = (queries: Queries, change: Recovered) => recordChange(queries, "cluster.change_recovered", change);
const putAgain = (queries: Queries, change: Recovered) => recordChange(queries, "cluster.ends_put_again", change);

/** Records the change in the audit chain of each affected organization. */
function recordChange(queries: Queries, name: string, { seq, orgs }: Recovered): void {
  const event = { ...BY_CLUSTER, event: name, at: now() };
  appendAudits(
    queries,
    [...orgs].map(([org_id, tables]) => ({ ...event, org_id, details: { change: seq, tables } })),
  );
}

function nameLost(queries: Queries, { org_id, room_id, room_uid, by }: LostName): void {
  const details = { named_now: by.room_uid, host: by.host_id };
  appendAudit(queries, {
    ...BY_CLUSTER,
    event: "cluster.room_name_lost",
    at: now(),
    org_id,
    room_id,
    room_uid,
    details,
  });
}

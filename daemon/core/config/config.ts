/**
 * The configuration: every key with its type, default and meaning, read once.
 * A value comes from the environment (ROOMD_ and the key in upper case with _ for .), else from the file, else from its default here.
 */
import { existsSync, readFileSync } from "node:fs";
import { parse } from "smol-toml";
import { CAPPED, type Capped, type Plan } from "../../../shared/api/people/plans.ts";
import { parseDuration } from "../../../shared/duration.ts";
import { errnoOf } from "../service-error.ts";

type Kind = "string" | "boolean" | "integer" | "duration" | readonly string[];

interface Key {
  kind: Kind;
  default: string | boolean | number;
  /** One line for config.example.toml. */
  about: string;
}

type PlanKey<P extends Plan> = `plans.${P}.${Capped}_${"soft" | "hard"}_cap` | `plans.${P}.credits`;

/** The keys of a plan: a soft and a hard cap per resource, with their default values, and its credits. */
function planKeys<const P extends Plan>(plan: P, caps: Record<Capped, readonly [soft: number, hard: number]>) {
  const keys = CAPPED.flatMap((quantity) => [
    [
      `plans.${plan}.${quantity}_soft_cap`,
      integer(caps[quantity][0], `Plan ${plan}: warn above this many ${WORDS[quantity]}.`),
    ],
    [`plans.${plan}.${quantity}_hard_cap`, integer(caps[quantity][1], `Plan ${plan}: most ${WORDS[quantity]}.`)],
  ]);
  keys.push([`plans.${plan}.credits`, integer(0, `Plan ${plan}: credits of an organization; 0: no limit.`)]);
  return Object.fromEntries(keys) as Record<PlanKey<P>, IntegerKey>;
}

interface IntegerKey extends Key {
  kind: "integer";
  default: number;
}

const integer = (value: number, about: string): IntegerKey => ({ kind: "integer", default: value, about });

const WORDS: Record<Capped, string> = {
  rooms: "rooms of an organization",
  sandboxes: "sandboxes of an organization",
  memory_mib: "MiB of memory of its sandboxes together",
  disk_gib: "GiB that the disks of its sandboxes may grow to together",
  drive_gib: "GiB on the drives of its rooms together",
  template_mib: "MiB that its own templates take on the host's disk together",
};

export const DEFAULT_CONFIG_FILE = "/etc/roomd/config.toml";

/** Durations have the form `90s`, `15m`, `24h` or `7d`. */
export const CONFIG_KEYS = {
  "http.listen": {
    kind: "string",
    default: "127.0.0.1:8080",
    about: "Address of the API, as host:port. It speaks HTTP, or HTTPS with the tls keys below.",
  },
  "http.base_url": {
    kind: "string",
    default: "",
    about: "URL by which clients reach the API, if it is not http.listen.",
  },
  "http.trusted_proxies": {
    kind: "string",
    default: "",
    about:
      "Proxies whose X-Forwarded-For gives the client's address: addresses and ranges, separated by commas. Otherwise the proxy counts as the client.",
  },
  "web.enabled": {
    kind: "boolean",
    default: true,
    about: "Whether there are pages for people: signing in, accounts, keys and members. /docs is there in any case.",
  },
  "oauth.registration": {
    kind: "boolean",
    default: true,
    about: "Whether applications may register themselves, as most MCP clients do. Needs web.enabled.",
  },
  "oauth.registrations": {
    kind: "integer",
    default: 20,
    about: "Most registrations in an hour from one address; 0: no limit.",
  },
  "oauth.documents": {
    kind: "boolean",
    default: true,
    about:
      "Whether applications may identify themselves by a metadata document at an https URL, which roomd then fetches. Needs web.enabled.",
  },
  "oauth.document_hosts": {
    kind: "string",
    default: "",
    about:
      "Hosts of such documents that are accepted, separated by commas, on private addresses too; empty: all public ones.",
  },
  "http.insecure": { kind: "boolean", default: false, about: "Allow a non-loopback http.listen without TLS." },
  "tls.mode": {
    kind: ["off", "files", "self-signed"],
    default: "off",
    about: "Source of the certificate. With tls.cert and tls.key set, off means files.",
  },
  "tls.cert": {
    kind: "string",
    default: "",
    about: "PEM file with the certificate chain; read again when it changes.",
  },
  "tls.key": { kind: "string", default: "", about: "PEM file with the certificate's private key." },
  "ports.domain": {
    kind: "string",
    default: "",
    about: "Domain of exposed ports: *.DOMAIN must lead to the API. Each port then has its own host name and origin.",
  },
  "ssh.listen": {
    kind: "string",
    default: "127.0.0.1:2222",
    about: 'Address of the SSH gateway, as host:port; "" disables it.',
  },
  "ssh.address": {
    kind: "string",
    default: "",
    about: "Address by which clients reach the SSH gateway, as host:port, if it is not ssh.listen.",
  },
  "ssh.login_grace": {
    kind: "duration",
    default: "20s",
    about: "A connection that has not logged in after this time is closed.",
  },
  "ssh.max_attempts": { kind: "integer", default: 6, about: "Keys and passwords that one connection may try." },
  "ssh.max_startups": { kind: "integer", default: 100, about: "Most connections that have not logged in yet." },
  "ssh.max_startups_per_address": { kind: "integer", default: 50, about: "Most of them from one address." },
  "ssh.max_connections": { kind: "integer", default: 512, about: "Most connections that have logged in." },
  "ssh.max_connections_per_org": { kind: "integer", default: 128, about: "Most of them of one organization." },
  "ssh.max_channels": {
    kind: "integer",
    default: 64,
    about: "Most commands and forwarded connections of one connection.",
  },
  "ssh.idle_timeout": {
    kind: "duration",
    default: "12h",
    about: "A connection without traffic for this time is closed.",
  },
  "terminal.detached_life": {
    kind: "duration",
    default: "10m",
    about: "How long a terminal keeps running with no client attached.",
  },
  "oidc.issuer": {
    kind: "string",
    default: "",
    about: "URL of the OpenID Connect issuer whose accounts can also sign in. Empty: none.",
  },
  "oidc.client_id": { kind: "string", default: "", about: "Client id of this service at the issuer." },
  "oidc.client_secret_file": {
    kind: "string",
    default: "",
    about: "File with the client secret of this service. Empty: none.",
  },
  "oidc.name": {
    kind: "string",
    default: "single sign-on",
    about: "Name of the issuer on the button of the sign-in page.",
  },
  "oidc.scopes": { kind: "string", default: "openid email profile", about: "Scopes requested from the issuer." },
  "oidc.domains": {
    kind: "string",
    default: "",
    about: "Domains of verified addresses that may sign in through the issuer, separated by commas. Empty: all.",
  },
  "oidc.role": {
    kind: ["none", "viewer", "member", "admin"],
    default: "none",
    about: "Role in oidc.org after the first sign-in through the issuer; none: only linked accounts can sign in.",
  },
  "oidc.org": { kind: "string", default: "", about: "Id of the organization that new users join." },
  "oidc.group_roles": {
    kind: "string",
    default: "",
    about:
      "Roles in oidc.org by the issuer's groups, as GROUP=ROLE separated by commas; the highest counts, and is updated at each sign-in through it. Users in none of the groups get oidc.role, and are rejected if that is none.",
  },
  "oidc.groups_claim": { kind: "string", default: "groups", about: "Claim with a user's groups." },
  "signup.mode": {
    kind: ["closed", "invite", "approval", "open"],
    default: "closed",
    about:
      "Sign-up of users with their own organizations. closed: none; invite: those whom the operator invites; approval: after the operator's approval; open: all with an address verified by e-mail.",
  },
  "signup.domains": {
    kind: "string",
    default: "",
    about: "Domains of the addresses that may sign up, separated by commas. Empty: all.",
  },
  "signup.per_day": integer(200, "Most sign-up e-mails in a day, to all addresses together; 0: no limit."),
  "signup.per_hour": integer(
    10,
    "Most requests to sign up or to recover an account in an hour from one address; 0: no limit.",
  ),
  "credits.signup": integer(500, "Credits of an organization created by sign-up, once for each e-mail address."),
  "smtp.host": {
    kind: "string",
    default: "",
    about: "SMTP server that sends e-mail to users. Empty: no e-mail is sent, and links are shown to be copied.",
  },
  "smtp.port": integer(0, "Its port; 0: 587, 465 or 25, depending on smtp.tls."),
  "smtp.tls": {
    kind: ["starttls", "implicit", "off"],
    default: "starttls",
    about: "Encryption of the connection to it; off for a server on this host only.",
  },
  "smtp.user": { kind: "string", default: "", about: "User name for the server. Empty: no authentication." },
  "smtp.password_file": { kind: "string", default: "", about: "File with the password." },
  "smtp.from": {
    kind: "string",
    default: "",
    about: 'Sender address of e-mails, as "roomd <roomd@example.org>".',
  },
  "otel.endpoint": {
    kind: "string",
    default: "",
    about:
      "Address of an OpenTelemetry collector that receives spans over OTLP/HTTP, as http://127.0.0.1:4318. Empty: no spans are sent.",
  },
  "otel.headers_file": {
    kind: "string",
    default: "",
    about: "File with headers for the collector, each a line NAME: VALUE. Empty: none.",
  },
  "otel.sample_percent": integer(
    100,
    "Percent of calls without a trace context that start a trace; calls with one follow its sampling flag.",
  ),
  "otel.trace_url": {
    kind: "string",
    default: "",
    about: "URL of the page that shows a trace, with {trace_id} for its id. Empty: pages show the id alone.",
  },
  data_dir: {
    kind: "string",
    default: "/var/lib/roomd",
    about: "Everything that must survive, on one file system: database, templates, drives.",
  },
  runtime_dir: { kind: "string", default: "/run/roomd", about: "Sockets and process records of the running guests." },
  host_id: {
    kind: "string",
    default: "",
    about: "Name of this host in answers and records; empty: generated at the first start and stored in data_dir.",
  },
  "cluster.url": {
    kind: "string",
    default: "",
    about:
      "PostgreSQL database that joins several hosts into one service, as postgres://USER:PASSWORD@HOST/DATABASE; HOST may be several servers, HOST:PORT,HOST:PORT, of which the primary is used. Empty: standalone host.",
  },
  "cluster.password_file": {
    kind: "string",
    default: "",
    about: "File with the password of that database's user, if it is not in cluster.url.",
  },
  "cluster.listen": {
    kind: "string",
    default: "127.0.0.1:7443",
    about: "Address for connections from the other hosts, as host:port. Only members can connect.",
  },
  "cluster.address": {
    kind: "string",
    default: "",
    about: "Address by which the other hosts reach this host, as host:port, if it is not cluster.listen.",
  },
  "cluster.labels": {
    kind: "string",
    default: "",
    about: "Labels of this host that rooms can require, as NAME=VALUE separated by commas.",
  },
  "cluster.stale_after": {
    kind: "integer",
    default: 0,
    about:
      "Seconds without access to the database after which a host rejects keys and sessions (503 cluster_unavailable), as they may have been revoked since. 0: never; rooms keep working.",
  },
  "backup.log_mib": integer(
    1024,
    "A backup fails when the database's log grows beyond this many MiB while the database is copied. On XFS and btrfs the copy is instant.",
  ),
  "backup.s3.bucket": {
    kind: "string",
    default: "",
    about: "Bucket of an S3-compatible object store for backups. Empty: no automatic backups.",
  },
  "backup.s3.endpoint": {
    kind: "string",
    default: "",
    about: "URL of the object store, with http or https and without a path.",
  },
  "backup.s3.region": { kind: "string", default: "us-east-1", about: "Region for the signature of requests." },
  "backup.s3.prefix": {
    kind: "string",
    default: "",
    about: "Prefix of the names of backups in the bucket, as roomd/production.",
  },
  "backup.s3.key_id": { kind: "string", default: "", about: "Id of the key for the object store." },
  "backup.s3.secret_file": { kind: "string", default: "", about: "File with the secret of that key." },
  "backup.s3.passphrase_file": {
    kind: "string",
    default: "",
    about:
      "File with the passphrase that encrypts backups, 16 characters or more. Keep a copy elsewhere: without it backups cannot be restored.",
  },
  "backup.s3.every": {
    kind: "duration",
    default: "24h",
    about: "Interval from a successful backup to the next; 0s: only by `roomd backup --to s3`.",
  },
  "backup.s3.keep": integer(
    7,
    "Number of this host's backups to keep in the bucket: older ones are deleted once a newer one is verified; 0: all.",
  ),
  "backup.s3.read_back": {
    kind: "boolean",
    default: true,
    about: "Whether each backup is read back and decrypted after the upload, before older ones are deleted.",
  },
  acceleration: {
    kind: ["auto", "kvm", "tcg"],
    default: "auto",
    about: "auto boots a probe guest to find out whether KVM works.",
  },
  "log.level": { kind: ["debug", "info", "warn", "error"], default: "info", about: "Lowest level that is logged." },
  "vsock.transport": {
    kind: ["auto", "kernel", "vhost-user"],
    default: "auto",
    about: "auto uses the kernel's vhost-vsock if the host has it.",
  },
  "host.qemu": { kind: "string", default: "qemu-system-x86_64", about: "The QEMU to run." },
  "host.qemu_img": { kind: "string", default: "qemu-img", about: "The qemu-img to run." },
  "host.skopeo": { kind: "string", default: "skopeo", about: "The skopeo to run, which fetches images." },
  "host.virtiofsd": {
    kind: "string",
    default: "auto",
    about: "The Rust virtiofsd to run; auto: from the directory of `roomd setup`, or those of distributions.",
  },
  "host.vhost_device_vsock": {
    kind: "string",
    default: "vhost-device-vsock",
    about: "The vhost-user vsock device to run.",
  },
  "host.agent": {
    kind: "string",
    default: "auto",
    about: "The guest agent to bake into templates; auto: in the directory of roomd.",
  },
  "template.registries": {
    kind: "string",
    default: "",
    about:
      "Registries, by host and port, from which organizations may fetch images for custom templates, separated by commas; *: all public ones. A listed registry may be in a private network. Targets of redirects must be public or listed too.",
  },
  "template.cache_mib": {
    kind: "integer",
    default: 10_240,
    about:
      "Disk space for unpacked images and results of build steps, from which the next build continues. Entries unused for a week are deleted. 0: no cache.",
  },
  "template.mirror": {
    kind: "string",
    default: "",
    about: "URL of the Debian archive that templates are built from. Empty: the one in this host's apt sources.",
  },
  "isolation.uid_base": {
    kind: "integer",
    default: 1_900_019_712,
    about:
      "First of the 2^27 user ids of guests' processes and files, and of the 65536 group ids after them; a multiple of 65536. 0: they run as root.",
  },
  "limits.memory_mib": { kind: "integer", default: 0, about: "Most memory of one sandbox; 0: 3/4 of the host's." },
  "limits.vcpus": { kind: "integer", default: 0, about: "Most vCPUs of one sandbox; 0: the host's cores." },
  "limits.org_templates": {
    kind: "integer",
    default: 10,
    about: "Custom templates that an organization may have.",
  },
  "limits.template_build": {
    kind: "duration",
    default: "2h",
    about: "An organization's template build that is not ready after this time fails: builds run one at a time.",
  },
  "limits.concurrent_creates": {
    kind: "integer",
    default: 0,
    about: "Sandboxes that start in parallel; 0: the host's cores.",
  },
  "limits.sandbox_start": {
    kind: "duration",
    default: "2m",
    about:
      "A sandbox that is not ready after this time fails; booting adds its template's ready_timeout_seconds. Set more for a very slow host, such as an emulated one.",
  },
  "limits.memory_overcommit": {
    kind: "integer",
    default: 0,
    about: "Percent of allocated but unused guest memory that may be allocated again.",
  },
  "limits.disk_free_mib": {
    kind: "integer",
    default: 128,
    about: "Below this much free space in data_dir nothing is added. At most 1/8 of the disk.",
  },
  "limits.disk_reserve_mib": {
    kind: "integer",
    default: 64,
    about: "Space reserved in data_dir so that deletes work on a full disk. At most 1/8 of the disk.",
  },
  "limits.requests_per_second": {
    kind: "integer",
    default: 1_000,
    about: "Requests a second of one API key; keys rotated from one another count together. 0: no limit.",
  },
  "limits.requests_at_once": {
    kind: "integer",
    default: 2_000,
    about: "Burst: most of these requests together after a pause.",
  },
  "limits.guest_requests_per_second": {
    kind: "integer",
    default: 200,
    about: "Requests a second of one sandbox to its room at room.internal. 0: no limit.",
  },
  "limits.guest_requests_at_once": {
    kind: "integer",
    default: 400,
    about: "Burst: most of these requests together after a pause.",
  },
  "limits.port_requests_per_second": {
    kind: "integer",
    default: 500,
    about: "Requests a second to the exposed ports of one sandbox; more are answered 429. 0: no limit.",
  },
  "limits.port_requests_at_once": {
    kind: "integer",
    default: 1_000,
    about: "Burst: most of these requests together after a pause.",
  },
  "limits.failed_logins": {
    kind: "integer",
    default: 60,
    about: "Requests a minute from one address with an invalid API key; more are answered 429. 0: no limit.",
  },
  ...planKeys("free", {
    rooms: [5, 10],
    sandboxes: [10, 20],
    memory_mib: [16_384, 32_768],
    disk_gib: [100, 200],
    drive_gib: [5, 10],
    template_mib: [10_240, 20_480],
  }),
  ...planKeys("starter", {
    rooms: [50, 100],
    sandboxes: [100, 200],
    memory_mib: [163_840, 327_680],
    disk_gib: [1000, 2000],
    drive_gib: [100, 200],
    template_mib: [102_400, 204_800],
  }),
  "billing.sandbox_hour": integer(0, "Credits for an hour of a running sandbox."),
  "billing.vcpu_hour": integer(0, "Credits for an hour of each vCPU of it."),
  "billing.memory_gib_hour": integer(0, "Credits for an hour of each GiB of its memory."),
  "billing.egress_gib": integer(0, "Credits for each GiB that sandboxes send to the outside."),
  "billing.drive_gib_month": integer(0, "Credits for each GiB on drives, for 730 hours."),
  "billing.grace": {
    kind: "duration",
    default: "15m",
    about: "How long an organization's sandboxes keep running when its credits are used up.",
  },
  "billing.provider": {
    kind: ["none", "stripe"],
    default: "none",
    about: "Payment service that sells plan starter; none: plans and credits come from the operator.",
  },
  "billing.monthly_credits": integer(0, "Credits for each month of plan starter that was paid."),
  "billing.stripe.secret_key_file": { kind: "string", default: "", about: "File with Stripe's secret key." },
  "billing.stripe.webhook_secret_file": {
    kind: "string",
    default: "",
    about: "File with the secret that Stripe signs its events with, which it sends to /billing/events.",
  },
  "billing.stripe.price": { kind: "string", default: "", about: "Id of the price of plan starter, as price_…." },
  "billing.stripe.api_url": {
    kind: "string",
    default: "",
    about: "URL of Stripe's API. Empty: the public one.",
  },
  "pool.size": {
    kind: "integer",
    default: 2,
    about:
      "Warm machines of template default kept ready for the next sandboxes, about 256 MiB of the host's memory each. Unless it is 0, and while memory is left, one more of each other template used in the last hour, four at most, and of each with 2, 4 or 8 processors if that was used, with up to its min_memory_mib.",
  },
  "pool.most": {
    kind: "integer",
    default: 10,
    about:
      "While memory is left, as many warm machines of a template are kept ready as were created within one minute of the last hour, up to this many.",
  },
  "reconcile.interval": {
    kind: "duration",
    default: "60s",
    about: "Interval of reconciling the database with the host's processes.",
  },
  "hibernate.on_shutdown": {
    kind: "boolean",
    default: true,
    about:
      "Whether sandboxes that run are saved to disk when the host is shut down or restarted, and resumed when the service starts.",
  },
  "drive.limit_gib": { kind: "integer", default: 10, about: "Size of one room's drive, in GiB." },
  "drive.limit_entries": {
    kind: "integer",
    default: 1_000_000,
    about: "Most files, directories and other names on one room's drive.",
  },
  "drive.retention": { kind: "duration", default: "24h", about: "How long a destroyed room's drive is kept." },
  "egress.default": {
    kind: ["public", "none"],
    default: "public",
    about: "Egress of a sandbox created without a list.",
  },
  "fabric.ack": {
    kind: "duration",
    default: "30s",
    about: "A message that needs an ack is delivered again after this time without one.",
  },
  "fabric.kept_mib": {
    kind: "integer",
    default: 256,
    about:
      "MiB of messages kept for an organization. Above three quarters of it the oldest that are in no inbox are deleted, but only after some minutes if a retry may need them; when the others fill it, sending is rejected. 0: no limit.",
  },
  "events.slow_reader": {
    kind: "duration",
    default: "30s",
    about: "A client that follows events and reads nothing for this time is disconnected.",
  },
  "egress.private_ranges": {
    kind: "string",
    default: "",
    about: "Private networks and addresses of this host that egress lists may name: ranges, separated by commas.",
  },
  "egress.hosts_file": {
    kind: "string",
    default: "",
    about:
      "File in the format of /etc/hosts with names for sandboxes and webhooks, read before this host's resolver is queried.",
  },
  "egress.mib_per_second": {
    kind: "integer",
    default: 0,
    about: "Most that one sandbox sends or receives in a second; 0: no limit.",
  },
  "webhooks.private_ranges": {
    kind: "string",
    default: "",
    about:
      "Private networks and addresses, of this host too, that webhooks of every organization may be sent to: ranges, separated by commas.",
  },
  "audit.reads": { kind: "boolean", default: true, about: "Record calls that only read." },
  "audit.records_per_day": {
    kind: "integer",
    default: 500_000,
    about:
      "Records of an organization in a day (UTC), above which reads and rejected calls are aggregated; above twice as many also messages, barriers, drive calls, and input and signals to commands. 0: no limit.",
  },
  "audit.counted_interval": {
    kind: "duration",
    default: "5m",
    about: "Interval of writing aggregated counts as records.",
  },
  "audit.retention": {
    kind: "duration",
    default: "90d",
    about:
      "How long records are kept; a day (UTC) is purged as a whole, once its last record has that age. 0s: unlimited.",
  },
  "audit.heads_file": {
    kind: "string",
    default: "",
    about:
      "File with the newest hash (head) of each audit chain, which reveals a chain that was cut short. Best on another disk. Empty: audit-heads.ndjson in data_dir.",
  },
  "audit.heads_interval": {
    kind: "duration",
    default: "60s",
    about:
      "Maximum delay until the head of a chain with a new record is written to this file, and in a cluster also to its database.",
  },
} as const satisfies Record<string, Key>;

export type ConfigKey = keyof typeof CONFIG_KEYS;

type ValueOf<K extends Key> = K["kind"] extends readonly string[]
  ? K["kind"][number]
  : K["kind"] extends "boolean"
    ? boolean
    : K["kind"] extends "integer" | "duration"
      ? number
      : string;

/** Effective values; durations are in seconds. */
export type Config = { readonly [K in ConfigKey]: ValueOf<(typeof CONFIG_KEYS)[K]> };

export class ConfigError extends Error {
  override name = "ConfigError";
}

export interface LoadedConfig {
  config: Config;
  /** Origin of each value: `default`, the file's path, or the variable's name. */
  origins: Record<ConfigKey, string>;
  file: string | null;
}

/** Reads file and environment. Throws ConfigError that names the key, the value and the expected form. */
export function loadConfig(
  options: { file?: string | undefined; env?: Record<string, string | undefined> } = {},
): LoadedConfig {
  const env = options.env ?? process.env;
  const file = options.file ?? (existsSync(DEFAULT_CONFIG_FILE) ? DEFAULT_CONFIG_FILE : null);
  const fromFile = file === null ? new Map<string, unknown>() : readFile(file);
  for (const key of fromFile.keys()) {
    if (!(key in CONFIG_KEYS))
      throw new ConfigError(`${file}: unknown key ${key}; \`roomd config --example\` lists all keys`);
  }
  const values: Record<string, unknown> = {};
  const origins: Record<string, string> = {};
  for (const [name, key] of Object.entries(CONFIG_KEYS)) {
    const variable = variableOf(name);
    const text = env[variable];
    if (text !== undefined) [values[name], origins[name]] = [coerce(name, key, text, variable), variable];
    else if (fromFile.has(name))
      [values[name], origins[name]] = [coerce(name, key, fromFile.get(name), String(file)), String(file)];
    else [values[name], origins[name]] = [coerce(name, key, key.default, "default"), "default"];
  }
  return { config: values as Config, origins: origins as Record<ConfigKey, string>, file };
}

/** The environment variable that overrides a key. */
export function variableOf(key: string): string {
  return `ROOMD_${key.toUpperCase().replaceAll(".", "_")}`;
}

/** The text of config.example.toml: every key, commented out, with its default. */
export function exampleConfig(): string {
  const lines = [
    "# Every key of roomd's configuration with its default.",
    "# Each can also be set by a variable: http.listen by ROOMD_HTTP_LISTEN.",
    "",
  ];
  for (const [name, key] of Object.entries(CONFIG_KEYS)) {
    const kind: Kind = key.kind;
    const choices = Array.isArray(kind) ? ` One of ${kind.join(", ")}.` : "";
    lines.push(`# ${key.about}${choices}`, `# ${name} = ${JSON.stringify(key.default)}`, "");
  }
  return lines.join("\n");
}

function readFile(file: string): Map<string, unknown> {
  let tree: Record<string, unknown>;
  try {
    tree = parse(readFileSync(file, "utf8"));
  } catch (error) {
    if (errnoOf(error) === "ENOENT")
      throw new ConfigError(
        `There is no configuration file ${file}: make one with \`roomd config --example\`, or leave --config out.`,
      );
    throw new ConfigError(`${file}: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`);
  }
  return new Map(flatten(tree, ""));
}

function* flatten(tree: object, prefix: string): Generator<[string, unknown]> {
  for (const [name, value] of Object.entries(tree)) {
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      yield* flatten(value, `${prefix}${name}.`);
    else yield [`${prefix}${name}`, value];
  }
}

function coerce(name: string, key: Key, value: unknown, origin: string): unknown {
  const wrong = (want: string) => new ConfigError(`${name} = ${JSON.stringify(value)} (${origin}): must be ${want}`);
  const { kind } = key;
  if (kind === "string") {
    if (typeof value !== "string") throw wrong("text");
    return value;
  }
  if (kind === "boolean") {
    if (value === true || value === "true" || value === "1") return true;
    if (value === false || value === "false" || value === "0") return false;
    throw wrong("true or false");
  }
  if (kind === "integer") {
    const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
    if (typeof number !== "number" || !Number.isSafeInteger(number) || number < 0)
      throw wrong("a whole number, 0 or more");
    return number;
  }
  if (kind === "duration") {
    const ms = typeof value === "string" || typeof value === "number" ? parseDuration(String(value)) : null;
    if (ms === null || ms % 1000 !== 0)
      throw wrong('a duration such as "90s", "15m", "24h" or "7d"; a bare number is seconds');
    return ms / 1000;
  }
  if (typeof value !== "string" || !kind.includes(value)) throw wrong(`one of ${kind.join(", ")}`);
  return value;
}

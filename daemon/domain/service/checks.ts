/** Checks of /health and `roomd doctor`: the same ids, each with a remedy if it is not ok. */
import { existsSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import type { HealthCheck } from "../../../shared/api/service.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Confinement } from "../../host/confine/confinement.ts";
import type { QuotaFindings } from "../../host/files/project-quota.ts";
import type { ForeignListeners } from "../../host/guest-link/transports/listeners.ts";
import type { IsolationFindings } from "../../host/isolation/inspect.ts";
import { KVM_CLOSED, type ProbeResult } from "../../host/probe.ts";
import type { BackupFigures } from "../backups/index.ts";
import { isOutdated, type Templates } from "../templates/registry.ts";

const WARN_DISK_FREE_BYTES = 4 * 1024 ** 3;
const FAIL_DISK_FREE_BYTES = 512 * 1024 ** 2;
/** A guest takes about 16 names and 8 KiB of runtime_dir. */
const WARN_RUNTIME_FREE = { bytes: 4 * 1024 ** 2, names: 1000 } as const;
const FAIL_RUNTIME_FREE = { bytes: 64 * 1024, names: 32 } as const;
const LEAST_QEMU = 8.2;
/** On hosts that are virtual machines, systemd-ssh-generator(8) makes sshd listen on this port. */
const SSH_PORT = 22;

/** Findings about the host at the daemon's start. */
export interface HostFindings {
  acceleration: ProbeResult;
  configured_acceleration: "auto" | "kvm" | "tcg";
  qemu_version: string | null;
  virtiofsd: string | null;
  vsock: { kind: "kernel" | "vhost-user" | null; reason: string };
  /** Other programs that listen on vsock ports reachable by guests; null if guests cannot reach vsock of the host. */
  vsock_listeners: ForeignListeners | null;
  isolation: IsolationFindings & { kvm_opens: boolean };
  confinement: Pick<Confinement, "kind" | "reason">;
  /** Required features of kernel and runtime that do not work, one sentence each. */
  runtime: readonly string[];
  /** Reason for keeping the SSH gateway closed; null if its library is as required. */
  ssh: string | null;
  drive_quota: QuotaFindings;
  web: WebFindings | null;
}

/** URL of the pages for people; null if these are switched off. */
export interface WebFindings {
  /** As clients reach the service. */
  url: string;
  /** Whether passwords and cookies are protected from eavesdropping on the way to this URL. */
  is_trustworthy: boolean;
  /** Whether the service itself terminates TLS, and is reachable from other hosts. */
  has_tls: boolean;
  is_local: boolean;
  /** Whether proxies are trusted for the client's address. */
  has_proxies: boolean;
  /** Domain of the hosts of exposed ports; null without one. */
  ports_domain: string | null;
}

/** All checks, in the order in which they are reported; docs/troubleshooting.md has a line for each. */
export const CHECK_IDS = [
  "acceleration",
  "qemu",
  "virtiofsd",
  "vsock",
  "vsock_listeners",
  "isolation",
  "confinement",
  "runtime",
  "readers",
  "aside",
  "ssh",
  "passkeys",
  "drive_quota",
  "templates",
  "sandboxes",
  "host_restart",
  "backups",
  "audit",
  "clock",
  "membership",
  "directory",
  "directory_rows",
  "data_dir",
  "disk",
  "runtime_dir",
  "web",
] as const;

type CheckId = (typeof CHECK_IDS)[number];
type Check = Required<HealthCheck> & { id: CheckId };

/** Sign-in methods besides passwords; null if the web is off. */
export interface PasskeyFindings {
  /** The relying party name for which passkeys are valid; null if the service's URL has none. */
  rp_id: string | null;
  /** Passkeys made for other host names. */
  elsewhere: readonly { rp_id: string; passkeys: number }[];
}

/** State of this host's audit according to the shared database; null if there is no shared database. */
export interface AnchorFindings {
  /** Number of chains that lack anchored records; null: unknown. */
  lost: number | null;
}

/** This host's clock compared with that of the shared database; null if there is no shared database. */
export interface ClockFindings {
  /** Minimum by which the clock is ahead; negative: behind; null: unknown. */
  ahead_ms: number | null;
}

/** Whether this host is a member of its service; null for a standalone host. */
export interface MembershipFindings {
  /** Null: that is not known. */
  is_member: boolean | null;
  /** Whether the host has read the cluster directory since its start. */
  has_followed: boolean;
}

/** The shared database; null for a standalone host. */
export interface DirectoryFindings {
  /** Number of servers in the configuration. */
  servers: number;
  /** Null: not read yet. */
  settings: { fsync: boolean; full_page_writes: boolean; synchronous_standby_names: string } | null;
  /** Rows that this host's tables reject: their number, and names of a few if the caller may read them. */
  unfit: { rows: number; named: readonly string[] };
}

/** Threads that read and compute on behalf of the event loop. */
export interface ThreadFindings {
  readers: {
    /** Whether the threads have exited so often that reads run on the event loop. */
    is_degraded: boolean;
  };
  aside: {
    /** Whether the thread has exited three times within a minute. */
    is_degraded: boolean;
  };
}

/** Findings about the existing sandboxes. */
export interface SandboxFindings {
  /** Agents of quarantined sandboxes. */
  quarantined: readonly string[];
  /** Number of sandboxes that are still to be resumed after the host's shutdown. */
  awaited: number;
  /** Effect of a host shutdown; null if it saves no sandboxes (hibernate.on_shutdown). */
  shutdown: ShutdownFindings | null;
}

export interface ShutdownFindings {
  /** Whether the host's service manager announces it; else `roomd hibernate` has to be run. */
  is_told: boolean;
  /** Number of sandboxes that would be saved, and the most disk space that takes. */
  saved: number;
  needs_bytes: number;
  spare_bytes: number;
  /** Sandboxes that it would end, with names that the reader may see. */
  lost: readonly { name: string; why: string; is_space: boolean }[];
}

export function runChecks(
  findings: HostFindings,
  templates: Templates,
  paths: Paths,
  sandboxes: SandboxFindings,
  {
    passkeys,
    backups,
    anchors,
    clock,
    membership,
    directory,
    threads,
  }: {
    passkeys: PasskeyFindings | null;
    backups: BackupFigures | null;
    anchors: AnchorFindings | null;
    clock: ClockFindings | null;
    membership: MembershipFindings | null;
    directory: DirectoryFindings | null;
    /** Null without a daemon. */
    threads: ThreadFindings | null;
  },
): Check[] {
  return [
    accelerationCheck(findings),
    qemuCheck(findings),
    findings.virtiofsd === null
      ? fail(
          "virtiofsd",
          "The Rust virtiofsd is not installed on this host.",
          "Run `roomd setup --no-demo`, or set host.virtiofsd.",
        )
      : ok("virtiofsd", `virtiofsd is ${findings.virtiofsd}.`),
    findings.vsock.kind === null
      ? fail("vsock", findings.vsock.reason, "Load the module vhost_vsock, or install vhost-device-vsock.")
      : ok("vsock", findings.vsock.reason),
    listenersCheck(findings),
    isolationCheck(findings),
    findings.confinement.kind === "none"
      ? warn(
          "confinement",
          findings.confinement.reason,
          "Run roomd on a host with systemd, or in a container with cgroup v2 and its controllers.",
        )
      : ok("confinement", findings.confinement.reason),
    runtimeProbesCheck(findings),
    readersCheck(threads),
    asideCheck(threads),
    findings.ssh === null
      ? ok("ssh", "The library of the SSH gateway works as expected.")
      : warn("ssh", findings.ssh, "Install a released build of roomd, or report it."),
    passkeysCheck(passkeys),
    quotaCheck(findings),
    templateCheck(templates),
    sandboxesCheck(sandboxes),
    hostRestartCheck(sandboxes),
    backupsCheck(backups),
    auditCheck(anchors),
    clockCheck(clock),
    membershipCheck(membership),
    directoryCheck(directory),
    directoryRowsCheck(directory),
    dataDirCheck(paths.data, statfsSync(nearest(paths.data)).type),
    diskCheck(paths),
    runtimeCheck(paths),
    webCheck(findings),
  ];
}

/** Browser features that do not work at the service's URL, and missing separation of origins. */
function webCheck({ web }: HostFindings): Check {
  if (!web) return ok("web", "The web pages are disabled.");
  const { protocol, hostname, pathname } = new URL(web.url);
  const troubles: [message: string, remedy: string][] = [];
  if (!web.is_trustworthy) {
    troubles.push([
      `Browsers reach the pages at ${web.url}: over plain HTTP at a host name, passwords are rejected and passkeys do not work.`,
      "Set tls.mode, or http.base_url to the https:// address of a proxy that has TLS.",
    ]);
  }
  if (pathname !== "/") {
    troubles.push([
      `http.base_url has the path ${pathname}, but pages and cookies are at the root.`,
      "Remove the path.",
    ]);
  }
  if (protocol === "https:" && !web.has_tls) {
    if (!web.is_local) {
      troubles.push([
        "http.base_url is that of a proxy with TLS, but http.listen accepts plain HTTP from every host.",
        "Set http.listen to loopback, or enable TLS for it as well.",
      ]);
    }
    if (!web.has_proxies) {
      troubles.push([
        "For limits and records, all requests come from the proxy.",
        "Set http.trusted_proxies to its address.",
      ]);
    }
  }
  const ports = web.ports_domain?.replace(/:\d+$/, "") ?? null;
  if (ports !== null && siteOf(ports) === siteOf(hostname)) {
    troubles.push([
      `Exposed ports are below ${ports}, on the same site as the pages at ${hostname}: they can make a browser drop its sign-in cookie.`,
      "Set ports.domain to a separate domain.",
    ]);
  }
  if (troubles.length === 0) return ok("web", `The web pages are at ${web.url}.`);
  return warn("web", troubles.map(([message]) => message).join(" "), troubles.map(([, remedy]) => remedy).join(" "));
}

/** The site as browsers determine it, by the last two labels; an address is a site by itself. */
const siteOf = (name: string): string => (/^[\d.]+$|^\[/.test(name) ? name : name.split(".").slice(-2).join("."));

function accelerationCheck({ acceleration, configured_acceleration }: HostFindings): Check {
  if (acceleration.acceleration === "kvm") return ok("acceleration", acceleration.reason);
  if (configured_acceleration === "tcg") return ok("acceleration", acceleration.reason);
  if (acceleration.pending) {
    return warn("acceleration", acceleration.reason, "Run `roomd setup`, or `roomd template build default`.");
  }
  return warn(
    "acceleration",
    `${acceleration.reason} Guests are emulated, about ten times slower.`,
    acceleration.remedy ?? "Use a host with KVM, or a VM with nested virtualization enabled.",
  );
}

function qemuCheck({ qemu_version }: HostFindings): Check {
  const remedy = "Run `roomd setup --no-demo`, or set host.qemu.";
  if (qemu_version === null) return fail("qemu", "QEMU does not run on this host.", remedy);
  if (Number.parseFloat(qemu_version) < LEAST_QEMU) {
    return fail("qemu", `QEMU ${qemu_version} is too old: roomd needs ${LEAST_QEMU} or newer.`, remedy);
  }
  return ok("qemu", `QEMU is ${qemu_version}.`);
}

/** On these ports, a guest with kernel vsock is not restricted by its egress list. */
function listenersCheck({ vsock_listeners: found }: HostFindings): Check {
  if (found === null) return ok("vsock_listeners", "Sandboxes reach no vsock port of this host.");
  if ("unknown" in found) {
    const check = ok("vsock_listeners", `Other listeners on this host's vsock are unknown: ${found.unknown}.`);
    return { ...check, remedy: "Load the module vsock_diag; `ss --vsock -l` lists the listeners." };
  }
  if (found.ports.length === 0) return ok("vsock_listeners", "Only roomd listens on this host's vsock.");
  const one = found.ports.length === 1;
  const is_ssh = found.ports.includes(SSH_PORT);
  return warn(
    "vsock_listeners",
    `Other programs listen on this host's vsock ${one ? "port" : "ports"} ${found.ports.join(", ")}: every sandbox can reach ${one ? "it" : "them"}, regardless of its egress list.`,
    is_ssh
      ? "Port 22 is systemd's sshd: boot this host with `systemd.ssh_auto=no`. `ss --vsock -lp` lists the listeners."
      : "Stop them (`ss --vsock -lp` lists the listeners), or set `vsock.transport` to vhost-user.",
  );
}

function isolationCheck({ isolation, acceleration }: HostFindings): Check {
  const { base, problems, namespaces, mounts, kvm_opens } = isolation;
  const base_remedy = "Set isolation.uid_base to a multiple of 65536 at which 2^27 + 65536 unused ids begin.";
  if (base === 0) return warn("isolation", "The configuration lets guests' processes run as root.", base_remedy);
  const [problem] = problems;
  if (problem !== undefined) return fail("isolation", problem.message, problem.remedy ?? base_remedy);
  if (!namespaces) {
    return warn(
      "isolation",
      "This host has no user namespaces, so virtiofsd, which serves drives, runs as root with few capabilities. QEMU and vsock devices run as dedicated users.",
      "Set user.max_user_namespaces above 0 by sysctl, or allow roomd's container to create them.",
    );
  }
  if (!mounts) {
    return warn(
      "isolation",
      "roomd cannot create mount namespaces on this host, so QEMU sees the host's processes, and the files that its user may read.",
      "In a container, give roomd a seccomp profile and an AppArmor profile that allow mount, umount and pivot_root.",
    );
  }
  if (acceleration.acceleration === "kvm" && !kvm_opens) {
    return fail("isolation", `${KVM_CLOSED.reason}.`, KVM_CLOSED.remedy);
  }
  return ok(
    "isolation",
    "QEMU, virtiofsd and vsock device of each sandbox run as dedicated users; QEMU and virtiofsd see only their own directories.",
  );
}

function runtimeProbesCheck({ runtime }: HostFindings): Check {
  if (runtime.length === 0) return ok("runtime", "The features of the kernel and runtime that roomd uses work.");
  return fail(
    "runtime",
    runtime.join(" "),
    "Run roomd on a supported kernel (Linux 5.14 or newer), or report the failure.",
  );
}

function readersCheck(threads: ThreadFindings | null): Check {
  if (!threads?.readers.is_degraded) return ok("readers", "Reads of the database run in separate threads.");
  return warn(
    "readers",
    "Reader threads have ended three times within a minute: reads of the database delay other calls.",
    'Find "a reader thread has ended" in the service\'s log, report it, and restart the service.',
  );
}

function asideCheck(threads: ThreadFindings | null): Check {
  if (!threads?.aside.is_degraded) return ok("aside", "Large requests are parsed and checked in a separate thread.");
  return warn(
    "aside",
    "The thread for large requests has ended three times within a minute: such requests fail or wait for it.",
    'Find "the aside thread has ended" in the service\'s log, and report it.',
  );
}

/** Measurement keeps well-behaved guests to the quota; root in a guest can take space faster than it is measured. */
function quotaCheck({ drive_quota: { kind, reason } }: HostFindings): Check {
  if (kind === "project_quota") return ok("drive_quota", reason);
  return warn(
    "drive_quota",
    `${reason} Root in a guest can fill the disk before a measurement detects it.`,
    "Put data_dir on XFS or ext4 with project quotas (mount option prjquota): the kernel enforces them.",
  );
}

function templateCheck(templates: Templates): Check {
  const there = templates.list(null);
  if (there.length === 0) return fail("templates", "There is no template.", "Run `roomd template build default`.");
  const outdated = there.filter(isOutdated).map(({ record }) => record.template_id);
  const message = `Templates: ${there.map(({ record }) => record.template_id).join(", ")}.`;
  if (outdated.length === 0) return ok("templates", message);
  return warn(
    "templates",
    `${message} Built by an older roomd: ${outdated.join(", ")}. Any process in their guests can impersonate the agent.`,
    `Build them again (\`roomd template build ${outdated[0]}\`), then replace running sandboxes.`,
  );
}

function passkeysCheck(found: PasskeyFindings | null): Check {
  if (found === null) return ok("passkeys", "The web pages are disabled, so passkeys are not used.");
  const { rp_id, elsewhere } = found;
  if (rp_id === null) {
    return warn(
      "passkeys",
      "Passkeys are not available: browsers store them only for a host name with TLS, and for localhost.",
      "Set http.base_url to the https:// URL with a host name by which clients reach the service.",
    );
  }
  const [first] = elsewhere;
  if (first === undefined) return ok("passkeys", `Passkeys are valid at ${rp_id}.`);
  const count = elsewhere.reduce((sum, { passkeys }) => sum + passkeys, 0);
  return warn(
    "passkeys",
    `${count === 1 ? "A passkey was" : `${count} passkeys were`} created at ${elsewhere.map((each) => each.rp_id).join(", ")} and cannot be used at ${rp_id}.`,
    `Set http.base_url to that name again, or send users a link from \`roomd user link\`.`,
  );
}

function sandboxesCheck({ quarantined, awaited }: SandboxFindings): Check {
  if (awaited > 0) {
    return fail(
      "sandboxes",
      `${awaited === 1 ? "A sandbox is" : `${awaited} sandboxes are`} being resumed after the host was shut down.`,
      "Wait: the service is ready once each has been resumed or has failed.",
    );
  }
  if (quarantined.length === 0) return ok("sandboxes", "No sandbox is quarantined.");
  const [first = "", ...more] = quarantined;
  const named = more.length === 0 ? first : `${first} and ${more.length} more`;
  return warn(
    "sandboxes",
    `Adopting sandboxes crashed the service repeatedly, so they are quarantined: ${named}.`,
    "Report the service's log (`journalctl -u roomd`), then destroy these sandboxes.",
  );
}

/** Intervals without a good backup that cause a warning. */
const LATE_INTERVALS = 2;

/** `figures` null: no automatic backups. The object store's error text is for the operator, in the log and in the audit. */
function backupsCheck(figures: BackupFigures | null): Check {
  if (!figures) return ok("backups", "Automatic backups to an object store are not configured.");
  const { age_seconds, interval_seconds, failed, has_any } = figures;
  const hours = (age_seconds / 3600).toFixed(1);
  const last = has_any ? `The last successful backup is ${hours} hours old.` : "There is no successful backup yet.";
  const remedy = "`roomd audit --host --event backup.` shows the reason; `roomd backup --to s3` retries immediately.";
  if (failed !== null) return warn("backups", `${last} The next one failed.`, remedy);
  if (age_seconds > LATE_INTERVALS * interval_seconds) return warn("backups", last, remedy);
  return ok("backups", last);
}

/** The names of the chains are for the operator, in the log. */
function auditCheck(anchors: AnchorFindings | null): Check {
  if (!anchors) return ok("audit", "This host is standalone: its audit is not anchored elsewhere.");
  const { lost } = anchors;
  if (lost === null) return ok("audit", "The anchors of the audit have not been read yet.");
  if (lost === 0) return ok("audit", "All chains of the audit have their anchored records.");
  return warn(
    "audit",
    `${lost === 1 ? "A chain" : `${lost} chains`} of this host's audit ${lost === 1 ? "lacks" : "lack"} records that were anchored: the host's data is older than the anchors, or was changed.`,
    "`roomd audit verify --host` lists them. If the host was restored from a backup, records after the backup are lost.",
  );
}

/** An application's authorization code is valid for a minute, and may be redeemed at a host other than its issuer. */
const WARN_CLOCK_MS = 5000;

function clockCheck(clock: ClockFindings | null): Check {
  if (!clock) return ok("clock", "This host is standalone: its clock does not have to agree with others.");
  const { ahead_ms } = clock;
  if (ahead_ms === null) return ok("clock", "The clock of the cluster's database has not been read yet.");
  if (Math.abs(ahead_ms) < WARN_CLOCK_MS) {
    return ok("clock", "This host's clock agrees with that of the cluster's database.");
  }
  const how = `${Math.round(Math.abs(ahead_ms) / 1000)} s ${ahead_ms > 0 ? "ahead of" : "behind"}`;
  return warn(
    "clock",
    `This host's clock is ${how} that of the cluster's database: expiry times set by one host pass too early or too late on another.`,
    "Synchronize the clocks of all hosts and of the database's host with NTP; `timedatectl` shows whether this host does.",
  );
}

function membershipCheck(membership: MembershipFindings | null): Check {
  if (!membership) return ok("membership", "This host is standalone.");
  const { is_member, has_followed } = membership;
  if (is_member === false) {
    return fail(
      "membership",
      "This host is no longer a member of its service: calls that change something are refused.",
      "`roomd cluster list` on another host shows the hosts. A removed host must join again with a new data_dir. If the data was copied or restored, stop the other copy and start this host again.",
    );
  }
  if (!has_followed) {
    return warn(
      "membership",
      "This host has not read the cluster's database since it started: calls that change rooms are refused.",
      "Start the database, or make it reachable (cluster.url).",
    );
  }
  if (is_member === null) return ok("membership", "The membership of this host has not been read yet.");
  return ok("membership", "This host is a member of its service.");
}

function directoryCheck(directory: DirectoryFindings | null): Check {
  if (!directory) return ok("directory", "This host is standalone: it shares no database.");
  const { servers, settings } = directory;
  if (settings === null) return ok("directory", "The settings of the cluster's database have not been read yet.");
  const off = [
    ...(settings.fsync ? [] : ["fsync = off"]),
    ...(settings.full_page_writes ? [] : ["full_page_writes = off"]),
  ];
  const troubles: [message: string, remedy: string][] = [];
  if (off.length > 0) {
    troubles.push([
      `The cluster's database has ${off.join(" and ")}: a power failure of its host loses or damages acknowledged changes.`,
      "Enable it in postgresql.conf.",
    ]);
  }
  if (servers > 1 && settings.synchronous_standby_names === "") {
    troubles.push([
      "cluster.url names several servers, and the primary waits for no standby: a failover may lose acknowledged changes.",
      "Set synchronous_standby_names; with Patroni, synchronous_mode.",
    ]);
  }
  if (troubles.length === 0) return ok("directory", "The cluster's database keeps acknowledged changes.");
  return warn(
    "directory",
    troubles.map(([message]) => message).join(" "),
    troubles.map(([, remedy]) => remedy).join(" "),
  );
}

function directoryRowsCheck(directory: DirectoryFindings | null): Check {
  if (!directory) return ok("directory_rows", "This host is standalone: it has no replica of shared rows.");
  const { rows, named } = directory.unfit;
  if (rows === 0) return ok("directory_rows", "All rows of the cluster's database fit the tables of this host.");
  const names = named.length > 0 ? ` ${named.join("; ")}.` : "";
  return warn(
    "directory_rows",
    `${rows === 1 ? "A row" : `${rows} rows`} of the cluster's database ${rows === 1 ? "does" : "do"} not fit the tables of this host, which continues without ${rows === 1 ? "it" : "them"}.${names}`,
    "Upgrade this host if another host has a newer version: the rows are retried every minute. `roomd doctor` and the log of this host name them.",
  );
}

/** More names fill the screen without use. */
const MAX_NAMED = 50;

function hostRestartCheck({ shutdown }: SandboxFindings): Check {
  if (shutdown === null) {
    return ok("host_restart", "hibernate.on_shutdown is false: a shutdown of the host ends running sandboxes.");
  }
  const { is_told, saved, needs_bytes, spare_bytes, lost } = shutdown;
  const subject = is_told ? "A shutdown of the host" : "Before this host is shut down, `roomd hibernate --all`";
  if (lost.length === 0) {
    const figures = `at most ${mib(needs_bytes)} of the ${mib(spare_bytes)} MiB available on the disk`;
    const all = saved === 1 ? "the running sandbox" : `all ${saved} sandboxes that are running`;
    return ok("host_restart", saved === 0 ? "No sandbox is running." : `${subject} saves ${all}: ${figures}.`);
  }
  const named = lost.slice(0, MAX_NAMED).map(({ name, why }) => `${name} (${why})`);
  const more = lost.length > MAX_NAMED ? [`and ${lost.length - MAX_NAMED} more`] : [];
  const remedies = [
    ...(lost.some(({ is_space }) => is_space)
      ? ["Free space in data_dir, or hibernate or destroy sandboxes, before the host is shut down."]
      : []),
    ...(lost.some(({ is_space }) => !is_space)
      ? ["Recreate the sandboxes that cannot be saved, once their work is on the drive."]
      : []),
  ];
  return warn(
    "host_restart",
    `A shutdown of the host would end these sandboxes: ${[...named, ...more].join("; ")}. ${subject} saves ${saved === 1 ? "one other" : `${saved} others`}.`,
    remedies.join(" "),
  );
}

const mib = (bytes: number) => Math.floor(bytes / 1024 ** 2);

/** By the file system type that statfs(2) returns, as in linux/magic.h. */
const UNFIT: Record<number, string> = { 26985: "NFS", 4283649346: "CIFS", 4266872130: "SMB" };
const UNTRIED: Record<number, string> = { 12805120: "CephFS", 1702057286: "FUSE", 16914839: "9p" };

export function dataDirCheck(place: string, type: number): Check {
  const unfit = UNFIT[type];
  const untried = UNTRIED[type];
  const remedy = "Move data_dir to a local disk with ext4 or XFS.";
  if (unfit) {
    const why =
      "files that one guest has open and another removes are lost, and locks and flushed writes do not have the guarantees of roomd";
    return fail("data_dir", `${place} is on ${unfit}: ${why}.`, remedy);
  }
  if (untried) return warn("data_dir", `${place} is on ${untried}, on which roomd has not been tested.`, remedy);
  return ok("data_dir", `${place} is on a local file system.`);
}

function diskCheck(paths: Paths): Check {
  const place = nearest(paths.data);
  const { bavail, bsize } = statfsSync(place);
  const free = bavail * bsize;
  const message = `${(free / 1024 ** 3).toFixed(1)} GiB are free in ${place}.`;
  const remedy = "Free space, destroy rooms, or move data_dir to a larger disk.";
  if (free < FAIL_DISK_FREE_BYTES) return fail("disk", message, remedy);
  return free < WARN_DISK_FREE_BYTES ? warn("disk", message, remedy) : ok("disk", message);
}

function runtimeCheck(paths: Paths): Check {
  const place = nearest(paths.runtime);
  const { bavail, bsize, files, ffree } = statfsSync(place);
  const bytes = bavail * bsize;
  // Some file systems do not count inodes.
  const names = files === 0 ? Number.POSITIVE_INFINITY : ffree;
  const inodeText = files === 0 ? "" : ` and ${names} names`;
  const message = `${(bytes / 1024 ** 2).toFixed(1)} MiB${inodeText} are free in ${place}.`;
  const remedy =
    "Free space in runtime_dir, give its file system more space or inodes, or move runtime_dir to another.";
  const isBelow = (least: typeof WARN_RUNTIME_FREE | typeof FAIL_RUNTIME_FREE) =>
    bytes < least.bytes || names < least.names;
  if (isBelow(FAIL_RUNTIME_FREE)) return fail("runtime_dir", message, remedy);
  return isBelow(WARN_RUNTIME_FREE) ? warn("runtime_dir", message, remedy) : ok("runtime_dir", message);
}

/** The directory, or its nearest existing parent. */
function nearest(place: string): string {
  return existsSync(place) ? place : nearest(dirname(place));
}

function ok(id: CheckId, message: string): Check {
  return { id, status: "ok", message, remedy: null };
}

function warn(id: CheckId, message: string, remedy: string): Check {
  return { id, status: "warn", message, remedy };
}

function fail(id: CheckId, message: string, remedy: string): Check {
  return { id, status: "fail", message, remedy };
}

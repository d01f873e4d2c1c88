/**
 * Inspection of this host's capabilities for guests, and their composition for guest starts: once per process, and again on demand for
 * missing ones.
 */
import { dirname, join } from "node:path";
import { Mailbox } from "../core/concurrency/mailbox.ts";
import type { Config } from "../core/config/config.ts";
import type { Paths } from "../core/config/paths.ts";
import type { Log } from "../core/log.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import type { HostFindings } from "../domain/service/checks.ts";
import { newestKernel } from "../domain/templates/registry.ts";
import { isLoopback, planListen } from "../edge/http/tls.ts";
import { newPrivateKey } from "../edge/ssh/host-key.ts";
import { probeInside } from "../edge/ssh/ssh2-internals.ts";
import { isTrustworthy } from "../edge/web/headers.ts";
import { findConfinement } from "../host/confine/index.ts";
import { inspectProjectQuota } from "../host/files/project-quota.ts";
import type { GuestHost } from "../host/guest/plan.ts";
import { Transports } from "../host/guest-link/transports/choose.ts";
import { foreignListeners } from "../host/guest-link/transports/listeners.ts";
import { asUser } from "../host/isolation/argv.ts";
import { type Isolation, kvmGroups, makeIsolation } from "../host/isolation/index.ts";
import { canOpen, inspectIsolation } from "../host/isolation/inspect.ts";
import type { Acceleration } from "../host/machine/spec.ts";
import {
  findVirtiofsd,
  hostFacts,
  knownAcceleration,
  type ProbeResult,
  probeAcceleration,
  programVersion,
} from "../host/probe.ts";
import { forbidCores } from "../host/rlimits.ts";
import { type Probed, probeRuntime } from "../host/runtime-probes.ts";
import { Throttle } from "../host/virtiofs/throttle.ts";

/** Default for the share of the host's memory that one sandbox may have. */
const MEMORY_SHARE = 0.75;

/** Maximum duration of a probe. */
const PROBE_RETRY_SECONDS = 5;

export interface InspectedHost {
  /** Current findings: if there was no kernel to probe with, the host is probed once there is one. */
  readonly findings: HostFindings;
  limits: { memory_mib: number; vcpus: number; concurrent_creates: number };
  programs: { qemu: string; qemu_img: string; skopeo: string; agent: string };
  readonly isolation: Isolation;
  /** Limits that the drive servers impose on their guests. */
  restraints: Throttle;
  /** Throws not_ready with the missing capabilities. */
  guestHost(): GuestHost;
  /** Inspects again the required capabilities that were missing. Does nothing if none was. */
  lookAgain(): Promise<void>;
  /** Determines the acceleration with a newly built kernel. */
  probe(kernel: string): Promise<Acceleration>;
  close(): void;
}

/** `probed` replaces parts of the runtime. */
export async function inspectHost(
  config: Config,
  paths: Paths,
  log: Log,
  probed: Partial<Probed> = {},
): Promise<InspectedHost> {
  const qemu = config["host.qemu"];
  const configured = config.acceleration;
  forbidCores();
  const confinement = findConfinement();
  const vsock = new Transports({ wanted: config["vsock.transport"], program: config["host.vhost_device_vsock"] });
  // Started together: these checks only wait for other programs.
  const probes = Promise.all([
    programVersion(qemu),
    vsock.choose(),
    probeRuntime(paths.runtime, probed),
    probeInside(newPrivateKey()),
  ]);
  const separate = async () => {
    const separation = await inspectIsolation({
      base: config["isolation.uid_base"],
      places: [paths.sandboxes, paths.rooms, paths.templates, paths.guests],
      scratch: paths.runtime,
    });
    const isolation = makeIsolation({ ...separation, kvmGroups: kvmGroups() });
    const prober = isolation.usersOf("probe")?.qemu ?? null;
    const kvm_opens = prober === null || (await canOpen((argv) => asUser(prober, argv), "/dev/kvm"));
    return { findings: { ...separation, kvm_opens }, isolation, prober };
  };
  let [separation, [qemuVersion, , runtime, ssh]] = await Promise.all([separate(), probes]);
  const probe = async (kernel: string | null): Promise<ProbeResult> => {
    if (configured !== "auto") return { acceleration: configured, reason: `The configuration sets ${configured}.` };
    return await probeAcceleration({
      qemu,
      kernel,
      cacheFile: paths.probe,
      scratch: paths.runtime,
      user: separation.prober,
    });
  };
  const acceleration = await probe(newestKernel(paths));
  const facts = hostFacts();
  const findings: HostFindings = {
    acceleration,
    configured_acceleration: configured,
    qemu_version: qemuVersion,
    virtiofsd: findVirtiofsd(config["host.virtiofsd"]),
    vsock: vsock.found,
    get vsock_listeners() {
      return vsock.reachesHost ? foreignListeners(vsock.ports) : null;
    },
    isolation: separation.findings,
    confinement,
    runtime,
    ssh,
    drive_quota: inspectProjectQuota(paths.rooms),
    web: webFindings(config),
  };
  const restraints = new Throttle();
  const renewals = new Mailbox();
  let probing: Promise<void> | null = null;
  const catchUp = () => {
    const kernel = findings.acceleration.pending && !probing ? newestKernel(paths) : null;
    if (kernel === null) return;
    // The build of the first template has already probed and stored the result.
    const known = knownAcceleration({ kernel, cacheFile: paths.probe });
    if (known) findings.acceleration = known;
    else
      probing = probe(kernel)
        .then((found) => {
          findings.acceleration = found;
          log.info("acceleration probed", { ...found });
        })
        .catch((error: unknown) => log.warn("failed to probe acceleration", { error: describeError(error) }))
        .finally(() => {
          probing = null;
        });
  };
  return {
    get findings() {
      catchUp();
      return findings;
    },
    get isolation() {
      return separation.isolation;
    },
    restraints,
    limits: {
      memory_mib: config["limits.memory_mib"] || Math.floor(facts.memory_mib * MEMORY_SHARE),
      vcpus: config["limits.vcpus"] || facts.cores,
      concurrent_creates: config["limits.concurrent_creates"] || facts.cores,
    },
    programs: {
      qemu,
      qemu_img: config["host.qemu_img"],
      skopeo: config["host.skopeo"],
      agent: config["host.agent"] === "auto" ? join(dirname(process.execPath), "roomd-agent") : config["host.agent"],
    },
    guestHost: () => {
      catchUp();
      if (probing) {
        const detail = "roomd is still finding out whether guests run under KVM on this host.";
        throw new ServiceError("not_ready", { detail, retryAfterSeconds: PROBE_RETRY_SECONDS });
      }
      const { virtiofsd, runtime } = findings;
      if (runtime[0] !== undefined) throw new ServiceError("not_ready", { detail: runtime[0] });
      const transport = vsock.chosen;
      if (!virtiofsd) throw new ServiceError("not_ready", { detail: "virtiofsd is not installed on this host." });
      const [problem] = findings.isolation.problems;
      if (problem !== undefined) throw new ServiceError("not_ready", { detail: problem.message, hint: problem.remedy });
      return {
        programs: { qemu, virtiofsd },
        transport,
        transportOf: (kind, firstPort) => vsock.of(kind, firstPort),
        isolation: separation.isolation,
        confinement,
        restraints,
        renewals,
        log,
      };
    },
    lookAgain: async () => {
      findings.virtiofsd ??= findVirtiofsd(config["host.virtiofsd"]);
      if (vsock.found.kind === null) {
        await vsock.choose();
        findings.vsock = vsock.found;
      }
      if (findings.isolation.problems.length > 0) {
        separation = await separate();
        findings.isolation = separation.findings;
      }
    },
    probe: async (kernel) => {
      findings.acceleration = await probe(kernel);
      return findings.acceleration.acceleration;
    },
    close: () => vsock.close(),
  };
}

function webFindings(config: Config): HostFindings["web"] {
  if (!config["web.enabled"]) return null;
  const { url, tls, hostname, ports_domain, trusted_proxies } = planListen(config);
  return {
    url,
    is_trustworthy: isTrustworthy(new URL(url)),
    has_tls: tls !== "off",
    is_local: isLoopback(hostname),
    has_proxies: trusted_proxies.length > 0,
    ports_domain,
  };
}

/** Owns the checks of /health and `roomd doctor`: the same ids, each with what to do when it is not ok. */
import { existsSync, statfsSync } from "node:fs";
import type { HealthCheck } from "../../shared/api/service.ts";
import type { Paths } from "../core/paths.ts";
import type { ProbeResult } from "../host/probe.ts";
import type { Templates } from "../templates/registry.ts";

const WARN_DISK_FREE_BYTES = 4 * 1024 ** 3;
const FAIL_DISK_FREE_BYTES = 512 * 1024 ** 2;
const LEAST_QEMU = 8.2;

/** What the host was found to have when the daemon started. */
export interface HostFindings {
  acceleration: ProbeResult;
  configured_acceleration: "auto" | "kvm" | "tcg";
  qemu_version: string | null;
  virtiofsd: string | null;
  vsock: { kind: "kernel" | "vhost-user" | null; reason: string };
}

type Check = Required<HealthCheck>;

export function runChecks(findings: HostFindings, templates: Templates, paths: Paths): Check[] {
  return [
    accelerationCheck(findings),
    qemuCheck(findings),
    findings.virtiofsd === null
      ? fail(
          "virtiofsd",
          "There is no Rust virtiofsd on this host.",
          "Run packaging/install-host, or set host.virtiofsd.",
        )
      : ok("virtiofsd", `virtiofsd is ${findings.virtiofsd}.`),
    findings.vsock.kind === null
      ? fail("vsock", findings.vsock.reason, "Load the module vhost_vsock, or install vhost-device-vsock.")
      : ok("vsock", findings.vsock.reason),
    templateCheck(templates),
    diskCheck(paths),
  ];
}

function accelerationCheck({ acceleration, configured_acceleration }: HostFindings): Check {
  if (acceleration.acceleration === "kvm") return ok("acceleration", acceleration.reason);
  if (configured_acceleration === "tcg") return ok("acceleration", acceleration.reason);
  return warn(
    "acceleration",
    `${acceleration.reason} Guests are emulated, about ten times slower.`,
    "Use a host with KVM, or a VM with nested virtualization switched on.",
  );
}

function qemuCheck({ qemu_version }: HostFindings): Check {
  const remedy = "Run packaging/install-host, or set host.qemu.";
  if (qemu_version === null) return fail("qemu", "QEMU does not run on this host.", remedy);
  if (Number.parseFloat(qemu_version) < LEAST_QEMU) {
    return fail("qemu", `QEMU ${qemu_version} is too old; ${LEAST_QEMU} is the least.`, remedy);
  }
  return ok("qemu", `QEMU is ${qemu_version}.`);
}

function templateCheck(templates: Templates): Check {
  const there = templates.list().map(({ record }) => record.template_id);
  if (there.length === 0) return fail("templates", "There is no template.", "Run `roomd template build default`.");
  return ok("templates", `Templates: ${there.join(", ")}.`);
}

function diskCheck(paths: Paths): Check {
  const place = existsSync(paths.data) ? paths.data : "/";
  const { bavail, bsize } = statfsSync(place);
  const free = bavail * bsize;
  const message = `${(free / 1024 ** 3).toFixed(1)} GiB are free in ${place}.`;
  const remedy = "Free space, destroy rooms, or move data_dir to a larger disk.";
  if (free < FAIL_DISK_FREE_BYTES) return fail("disk", message, remedy);
  return free < WARN_DISK_FREE_BYTES ? warn("disk", message, remedy) : ok("disk", message);
}

function ok(id: string, message: string): Check {
  return { id, status: "ok", message, remedy: null };
}

function warn(id: string, message: string, remedy: string): Check {
  return { id, status: "warn", message, remedy };
}

function fail(id: string, message: string, remedy: string): Check {
  return { id, status: "fail", message, remedy };
}

/**
 * Injected dependencies of template builds: the paths, programs, limits and callbacks that a build is given. Also selects the template's
 * hardware: the CPU model, memory and devices of the virtual machine that it is saved on.
 */
import { join } from "node:path";
import type { OrgId } from "../../../shared/ids.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import {
  type Acceleration,
  cpuModelFor,
  DRIVE_PORTS,
  type Hardware,
  MEMORY_GRAIN_MIB,
  machineTypeFor,
} from "../../host/machine/spec.ts";
import type { Caps } from "../orgs/index.ts";
import type { OpenTunnels } from "./image/network.ts";
import { FILE_NAMES } from "./manifest.ts";
import type { Recipe } from "./recipe.ts";
import type { ServeEgress } from "./recipe-steps.ts";

/** Progress of a build. */
export type BuildStage = "pulling" | "building" | "booting" | "testing";

export interface BuildDeps {
  paths: Paths;
  /** The host with the template group of the build's owner. */
  host(): GuestHost;
  /** Number of the group that reads the organization's templates. */
  numberOf(orgId: OrgId): Promise<number>;
  programs: { qemu_img: string; skopeo: string; agent: string };
  qemuVersion: string | null;
  /** Credentials of registries, in the format of docker's config.json; for this build only. */
  registryAuth?: string | undefined;
  /** URL of the Debian archive; empty: the archive in this host's apt sources. */
  mirror: string;
  /** Egress of a recipe's steps. */
  egress: {
    /** The errors of a list, as sentences. */
    wrong(allowlist: readonly string[]): string[];
    serve: ServeEgress;
  };
  /** Proxy through which organizations' images are fetched. */
  openTunnels: OpenTunnels;
  /** Throws disk_full if the data directory has no room for `bytes` besides its reserve. */
  requireSpace(bytes: number): void;
  /** Caps for an organization's templates, in MiB, from its current plan. */
  capsOf(orgId: OrgId): Caps;
  /** Maximum memory of one sandbox, and disk space for the build cache. */
  limits: { memory_mib: number; cache_bytes: number };
  /** Determines the acceleration with the new template's kernel. */
  probe(kernel: string): Promise<Acceleration>;
}

/** The hardware that the template is saved on, with the kernel in `directory`. */
export async function hardwareFor(
  { limits, qemuVersion, probe }: BuildDeps,
  { min_memory_mib }: Recipe,
  directory: string,
): Promise<Hardware> {
  const acceleration = await probe(join(directory, FILE_NAMES.kernel));
  const most = Math.max(0, limits.memory_mib - min_memory_mib);
  return {
    machine_type: machineTypeFor(qemuVersion),
    cpu_model: cpuModelFor(acceleration),
    base_memory_mib: min_memory_mib,
    max_plugged_mib: Math.ceil(most / MEMORY_GRAIN_MIB) * MEMORY_GRAIN_MIB,
    acceleration,
    drive_ports: DRIVE_PORTS,
    returns_memory: true,
  };
}

/**
 * Owns the limits that a sandbox's processes have together: memory, processor time, number of threads. By scopes of
 * systemd where it runs the host, else by files of cgroup v2, else not at all, which doctor says.
 */
import { existsSync } from "node:fs";
import { TCG_BUFFER_MIB } from "../machine/argv.ts";
import type { Acceleration } from "../machine/spec.ts";
import { CPU_WEIGHT, type Rank } from "../precedence.ts";
import type { Enter } from "../process.ts";
import { makeCgroups } from "./cgroup.ts";
import type { Confinement, Limits } from "./confinement.ts";
import { makeScopes } from "./systemd.ts";

/** QEMU without its guest, virtiofsd with a file for each that the guest knows, the vsock device, page tables. */
const OVERHEAD_MIB = 384;
/** QEMU's thread pools are bounded by 64 each; virtiofsd and the vsock device have a handful. */
const TASKS = 256;

export function limitsOf(
  guest: { memory_mib: number; vcpu_count: number; acceleration: Acceleration },
  rank: Rank,
): Limits {
  const translated_mib = guest.acceleration === "tcg" ? TCG_BUFFER_MIB : 0;
  return {
    memory_bytes: (guest.memory_mib + translated_mib + OVERHEAD_MIB) * 1024 ** 2,
    // One beside the guest's own, for the devices' processes.
    cpus: guest.vcpu_count + 1,
    tasks: TASKS + guest.vcpu_count,
    cpu_weight: CPU_WEIGHT[rank],
  };
}

/** By which a sandbox's first process makes its group before it begins. */
export function founding(confinement: Confinement, sandboxId: string, limits: Limits): Enter {
  return confinement.kind === "none" ? null : ({ pid }) => confinement.confine(sandboxId, pid, limits);
}

/** By which a further process of a sandbox comes into its group before it begins. */
export function entryTo(confinement: Confinement, sandboxId: string): Enter {
  return confinement.kind === "none" ? null : ({ pid }) => confinement.add(sandboxId, pid);
}

/** What this host has for it. */
export function findConfinement(): Confinement {
  if (existsSync("/run/systemd/system")) return makeScopes();
  return makeCgroups() ?? NONE;
}

const NONE: Confinement = {
  kind: "none",
  reason:
    "This host has neither systemd nor cgroup v2 with the controllers memory, pids and cpu: it does not limit a guest's processes.",
  confine: async () => {},
  add: async () => {},
  limit: async () => {},
  ranOutOfMemory: () => false,
  release: async () => {},
};

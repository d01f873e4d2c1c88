/**
 * Limits of a sandbox's processes together: memory, processor time, number of threads. Uses systemd scopes if systemd runs the host, else
 * the files of cgroup v2, else nothing, which doctor reports.
 */
import { existsSync } from "node:fs";
import { CPU_WEIGHT, type Rank } from "../cpu-priority.ts";
import { TCG_BUFFER_MIB } from "../machine/argv.ts";
import type { Acceleration } from "../machine/spec.ts";
import type { Enter } from "../process.ts";
import { makeCgroups } from "./cgroup.ts";
import type { Confinement, Limits } from "./confinement.ts";
import { makeScopes } from "./systemd.ts";

/** QEMU without guest memory, virtiofsd with an open file for each that the guest has cached, the vsock device, page tables. */
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
    // One more than the guest's own, for the device processes.
    cpus: guest.vcpu_count + 1,
    tasks: TASKS + guest.vcpu_count,
    cpu_weight: CPU_WEIGHT[rank],
  };
}

/** Makes a sandbox's group for its first process, before the process starts its program. */
export function founding(confinement: Confinement, sandboxId: string, limits: Limits): Enter {
  return confinement.kind === "none" ? null : ({ pid }) => confinement.confine(sandboxId, pid, limits);
}

/** Puts a further process of a sandbox into its group, before the process starts its program. */
export function entryTo(confinement: Confinement, sandboxId: string): Enter {
  return confinement.kind === "none" ? null : ({ pid }) => confinement.add(sandboxId, pid);
}

/** Best mechanism that this host has. */
export function findConfinement(): Confinement {
  if (existsSync("/run/systemd/system")) return makeScopes();
  return makeCgroups() ?? NONE;
}

const NONE: Confinement = {
  kind: "none",
  reason:
    "This host has neither systemd nor cgroup v2 with the controllers memory, pids and cpu, so guests' processes are not limited.",
  confine: async () => {},
  add: async () => {},
  limit: async () => {},
  ranOutOfMemory: () => false,
  release: async () => {},
};

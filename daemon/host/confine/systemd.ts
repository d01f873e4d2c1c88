/**
 * Owns confinement by systemd: a transient scope per sandbox, which outlives the daemon's own service. One call to its bus
 * moves the processes there; none of ours stays between. Its argument lists are tested, the calls only where systemd runs.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../process.ts";
import { killedForMemory } from "./cgroup.ts";
import type { Confinement, Limits } from "./index.ts";

const DEADLINE_MS = 10_000;
const MANAGER = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"] as const;
const USEC_PER_SEC = 1_000_000;

export function makeScopes(): Confinement {
  /** Where each sandbox's scope is: gone from /proc once its processes are. */
  const groups = new Map<string, string>();
  return {
    kind: "systemd",
    reason: "Each sandbox has a scope of systemd with limits of memory, processors and threads.",
    confine: async (sandboxId, pids, limits) => {
      await runProgram(startArgv(sandboxId, pids, limits), DEADLINE_MS);
      groups.set(sandboxId, join("/sys/fs/cgroup", "roomd.slice", scopeOf(sandboxId)));
    },
    add: async (sandboxId, pid) => {
      await runProgram(addArgv(sandboxId, pid), DEADLINE_MS);
    },
    ranOutOfMemory: (sandboxId) => {
      const group = groups.get(sandboxId);
      return group !== undefined && killedForMemory(() => readFileSync(join(group, "memory.events"), "utf8"));
    },
    // A scope goes with its last process.
    release: async (sandboxId) => {
      groups.delete(sandboxId);
    },
  };
}

export function startArgv(sandboxId: string, pids: readonly number[], limits: Limits): string[] {
  const properties = [
    ["Description", "s", `Sandbox ${sandboxId} of roomd`],
    ["Slice", "s", "roomd.slice"],
    ["CollectMode", "s", "inactive-or-failed"],
    ["PIDs", "au", String(pids.length), ...pids.map(String)],
    ["MemoryMax", "t", String(limits.memory_bytes)],
    ["MemorySwapMax", "t", "0"],
    ["TasksMax", "t", String(limits.tasks)],
    ["CPUQuotaPerSecUSec", "t", String(limits.cpus * USEC_PER_SEC)],
  ];
  return [
    ...call("StartTransientUnit", "ssa(sv)a(sa(sv))"),
    scopeOf(sandboxId),
    "fail",
    String(properties.length),
    ...properties.flat(),
    "0",
  ];
}

export function addArgv(sandboxId: string, pid: number): string[] {
  return [...call("AttachProcessesToUnit", "ssau"), scopeOf(sandboxId), "", "1", String(pid)];
}

function call(method: string, signature: string): string[] {
  return ["busctl", "--quiet", "call", ...MANAGER, method, signature];
}

function scopeOf(sandboxId: string): string {
  return `roomd-${sandboxId}.scope`;
}

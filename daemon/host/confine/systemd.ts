/**
 * Owns confinement by systemd: a transient scope per sandbox, which outlives the daemon's own service. One call to its bus
 * moves the processes there; none of ours stays between. Its argument lists are tested, the calls only where systemd runs.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../process.ts";
import { killedForMemory } from "./cgroup.ts";
import { type Confinement, IO_WEIGHT, type Limits } from "./confinement.ts";

const DEADLINE_MS = 10_000;
const MANAGER = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"] as const;
const SLICE = "roomd.slice";
const GROUPS = join("/sys/fs/cgroup", SLICE);
const USEC_PER_SEC = 1_000_000;

export function makeScopes(): Confinement {
  let weighed: Promise<unknown> | null = null;
  return {
    kind: "systemd",
    reason: "Each sandbox has a scope of systemd with limits of memory, processors and threads.",
    confine: async (sandboxId, pids, limits) => {
      // Less of the disk than it is meant to be is no reason to start nothing.
      weighed ??= runProgram(weighArgv(), DEADLINE_MS).catch(() => {
        weighed = null;
      });
      await weighed;
      await runProgram(startArgv(sandboxId, pids, limits), DEADLINE_MS);
    },
    add: async (sandboxId, pid) => {
      await runProgram(addArgv(sandboxId, pid), DEADLINE_MS);
    },
    // QEMU's end is heard of while its back ends still keep the scope.
    ranOutOfMemory: (sandboxId) =>
      killedForMemory(() => readFileSync(join(GROUPS, scopeOf(sandboxId), "memory.events"), "utf8")),
    // A scope goes with its last process.
    release: async () => {},
  };
}

export function startArgv(sandboxId: string, pids: readonly number[], limits: Limits): string[] {
  const properties = [
    ["Description", "s", `Sandbox ${sandboxId} of roomd`],
    ["Slice", "s", SLICE],
    ["CollectMode", "s", "inactive-or-failed"],
    ["PIDs", "au", String(pids.length), ...pids.map(String)],
    ["MemoryMax", "t", String(limits.memory_bytes)],
    ["MemorySwapMax", "t", "0"],
    ["TasksMax", "t", String(limits.tasks)],
    ["CPUQuotaPerSecUSec", "t", String(limits.cpus * USEC_PER_SEC)],
    ["IOWeight", "t", String(IO_WEIGHT.sandbox)],
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

/** What all sandboxes have of the disk, beside the slice in which the daemon's service is. */
export function weighArgv(): string[] {
  const weight = ["IOWeight", "t", String(IO_WEIGHT.all_sandboxes)];
  return [...call("SetUnitProperties", "sba(sv)"), SLICE, "true", "1", ...weight];
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

/** Confinement by the files of cgroup v2: one group `roomd`, with a child group per sandbox. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "../../core/service-error.ts";
import { type Confinement, IO_WEIGHT, type Limits } from "./confinement.ts";

const CONTROLLERS = ["memory", "pids", "cpu"];
/** Optional: enabled if available. */
const IO = "io";
const PERIOD_USEC = 100_000;
const NO_SWAP = "memory.swap.max";

/** Uses the file system mounted at `mount`; null if confinement is not possible. */
export function makeCgroups(mount: string | null = findMount()): Confinement | null {
  if (mount === null || !delegate(mount)) return null;
  const own = join(mount, "roomd");
  sweep(own);
  // The file exists only if a disk's scheduler supports weights.
  const weight = join(own, "io.weight");
  if (existsSync(weight)) writeFileSync(weight, `default ${IO_WEIGHT.all_sandboxes}`);
  const write = (sandboxId: string, file: string, value: string) => writeFileSync(join(own, sandboxId, file), value);
  const limit = (sandboxId: string, limits: Limits) => {
    for (const [file, value] of Object.entries(valuesOf(limits))) write(sandboxId, file, value);
    // Kernels without swap, or without accounting for it, have no such file.
    if (existsSync(join(own, sandboxId, NO_SWAP))) write(sandboxId, NO_SWAP, "0");
  };
  return {
    kind: "cgroup",
    reason: "Each sandbox has a control group with limits of memory, processors and threads.",
    confine: async (sandboxId, pid, limits) => {
      mkdirSync(join(own, sandboxId), { recursive: true });
      limit(sandboxId, limits);
      write(sandboxId, "cgroup.procs", String(pid));
    },
    add: async (sandboxId, pid) => write(sandboxId, "cgroup.procs", String(pid)),
    limit: async (sandboxId, limits) => limit(sandboxId, limits),
    ranOutOfMemory: (sandboxId) => killedForMemory(() => readFileSync(join(own, sandboxId, "memory.events"), "utf8")),
    release: async (sandboxId) => remove(join(own, sandboxId)),
  };
}

export function valuesOf(limits: Limits): Record<string, string> {
  return {
    "memory.max": String(limits.memory_bytes),
    "pids.max": String(limits.tasks),
    "cpu.max": `${limits.cpus * PERIOD_USEC} ${PERIOD_USEC}`,
    "cpu.weight": String(limits.cpu_weight),
  };
}

/** Whether memory.events counts a process that was killed. */
export function killedForMemory(read: () => string): boolean {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(read())?.[1] ?? 0) > 0;
  } catch {
    return false;
  }
}

function findMount(): string | null {
  const line = /^\S+ (\S+) cgroup2 /m.exec(readFileSync("/proc/self/mounts", "utf8"));
  return line?.[1] ?? null;
}

/** Delegates the controllers to our group. False if the kernel, or the container's creator, does not permit it. */
function delegate(mount: string): boolean {
  const offered = join(mount, "cgroup.controllers");
  if (!existsSync(offered)) return false;
  const there = readFileSync(offered, "utf8").trim().split(" ");
  if (!CONTROLLERS.every((name) => there.includes(name))) return false;
  try {
    mkdirSync(join(mount, "roomd"), { recursive: true });
    const controllers = [...CONTROLLERS, ...(there.includes(IO) ? [IO] : [])].map((name) => `+${name}`).join(" ");
    for (const group of [mount, join(mount, "roomd")])
      writeFileSync(join(group, "cgroup.subtree_control"), controllers);
    return true;
  } catch {
    return false;
  }
}

/** Removes groups of sandboxes that ended while no daemon ran; the kernel refuses for groups in use. */
function sweep(own: string): void {
  for (const entry of readdirSync(own, { withFileTypes: true })) if (entry.isDirectory()) remove(join(own, entry.name));
}

function remove(group: string): void {
  try {
    rmdirSync(group);
  } catch (error) {
    if (!["ENOENT", "EBUSY"].includes(errnoOf(error) ?? "")) throw error;
  }
}

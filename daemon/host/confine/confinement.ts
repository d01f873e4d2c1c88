/** Confinement of a sandbox's processes, by the mechanism that the host has. */

export interface Limits {
  memory_bytes: number;
  /** Whole processors. */
  cpus: number;
  tasks: number;
  /** Weight under processor contention, relative to other sandboxes, which have 100. */
  cpu_weight: number;
}

/**
 * Disk weights, if the disk's scheduler supports them (BFQ, or io.cost): under contention all sandboxes together get a fifth of the
 * daemon's share, and each as much as another. A limit would be worse: the file system's journal waits for any process that is held up.
 */
export const IO_WEIGHT = { all_sandboxes: 20, sandbox: 100 } as const;

export interface Confinement {
  kind: "systemd" | "cgroup" | "none";
  /** One sentence for /health and doctor. */
  reason: string;
  /** Makes the group of a sandbox, with these limits and its first process in it. */
  confine(sandboxId: string, pid: number, limits: Limits): Promise<void>;
  /** Adds a process under the existing limits, which also apply to its later children. */
  add(sandboxId: string, pid: number): Promise<void>;
  /** Changes the limits of the group. */
  limit(sandboxId: string, limits: Limits): Promise<void>;
  /** Whether the kernel has killed a process of the group for lack of memory. */
  ranOutOfMemory(sandboxId: string): boolean;
  /** Frees the group of a sandbox once its processes have exited. Idempotent. */
  release(sandboxId: string): Promise<void>;
}

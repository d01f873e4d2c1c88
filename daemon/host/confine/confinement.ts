/** What confines the processes of a sandbox, by whatever the host has for it. */

export interface Limits {
  memory_bytes: number;
  /** Whole processors. */
  cpus: number;
  tasks: number;
  /** Of what all want of the processors, beside other sandboxes, which have 100. */
  cpu_weight: number;
}

/**
 * Of the disk, where its scheduler knows weights (BFQ, or io.cost): all sandboxes together have a fifth of what the daemon has
 * while both want it, and each as much as another. A limit would be worse: the file system's journal waits for whoever is held up.
 */
export const IO_WEIGHT = { all_sandboxes: 20, sandbox: 100 } as const;

export interface Confinement {
  kind: "systemd" | "cgroup" | "none";
  /** One sentence for /health and doctor. */
  reason: string;
  /** Makes the group of a sandbox, with these limits and its first process in it. */
  confine(sandboxId: string, pid: number, limits: Limits): Promise<void>;
  /** Puts one more under the limits that are there; what it starts from then on is under them too. */
  add(sandboxId: string, pid: number): Promise<void>;
  /** Changes the limits of the group. */
  limit(sandboxId: string, limits: Limits): Promise<void>;
  /** Whether the kernel has ended a process of it for want of memory. */
  ranOutOfMemory(sandboxId: string): boolean;
  /** Frees what is kept for a sandbox whose processes have ended. Again is nothing. */
  release(sandboxId: string): Promise<void>;
}

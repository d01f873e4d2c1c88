/** What confines the processes of a sandbox, by whatever the host has for it. */

export interface Limits {
  memory_bytes: number;
  /** Whole processors. */
  cpus: number;
  tasks: number;
}

export interface Confinement {
  kind: "systemd" | "cgroup" | "none";
  /** One sentence for /health and doctor. */
  reason: string;
  /** Puts the processes of a sandbox under its limits, all at once. */
  confine(sandboxId: string, pids: readonly number[], limits: Limits): Promise<void>;
  /** Puts one more under the limits that are there. */
  add(sandboxId: string, pid: number): Promise<void>;
  /** Whether the kernel has ended a process of it for want of memory. */
  ranOutOfMemory(sandboxId: string): boolean;
  /** Frees what is kept for a sandbox whose processes have ended. Again is nothing. */
  release(sandboxId: string): Promise<void>;
}

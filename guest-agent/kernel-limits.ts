/**
 * Sets limits that the kernel derives from the memory at boot, for the memory of the sandbox: a template boots with its minimum memory, and
 * the rest is plugged before the first welcome.
 *
 *   boot ── fixed limits ──▶ saved ──▶ plugged ──▶ welcome ── limits for its memory ──▶ commands
 *
 * Limits are raised, never lowered: root of the sandbox may have set its own. Each limit is tried independently.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { limitTasks } from "./exec/cgroup.ts";
import * as libc from "./libc.ts";
import { log } from "./log.ts";

const SYSCTL = "/proc/sys";
const THREADS_MAX = "kernel/threads-max";
const MIB = 1024 * 1024;
const PAGE_BYTES = 4096;
const PAGES_PER_MIB = MIB / PAGE_BYTES;

/** A kernel stack has 16 KiB, and thread stacks may fill an eighth of the memory (kernel/fork.c, set_max_threads). */
const THREADS_PER_MIB = MIB / (8 * 16 * 1024);
/** The kernel's formula for 512 MiB; smaller sandboxes get this value too. */
const FEWEST_THREADS = 4096;
/** Threads reserved for the agent: RLIMIT_NPROC does not apply to root, and a process 1 that cannot start a thread ends the sandbox. */
const THREADS_OF_AGENT = 256;
/** Default limit of open files of one process. */
const FEWEST_FILES = 65_536;
/** An epoll item and its wait queue entry (fs/eventpoll.c, EP_ITEM_COST); together they may take 4 % of the memory. */
const EPOLL_WATCH_BYTES = 200;
/** net/ipv4/tcp.c, tcp_init. */
const MAX_SOCKET_BYTES = { tcp_wmem: 4 * MIB, tcp_rmem: 6 * MIB } as const;
const NAMESPACES = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"] as const;

/** Independent of the memory: the values of systemd and distributions. They are in the snapshot. */
export const FIXED_SYSCTLS: Readonly<Record<string, string>> = {
  "kernel/pid_max": "4194304",
  "fs/inotify/max_user_watches": "524288",
  "fs/inotify/max_user_instances": "8192",
  "vm/max_map_count": "1048576",
  "net/ipv4/tcp_max_syn_backlog": "4096",
};

export interface KernelLimits {
  /** Values by their path below /proc/sys; a value of three numbers is compared by the last. */
  sysctls: Record<string, string>;
  /** Processes and threads of one user, and its pending signals (RLIMIT_NPROC, RLIMIT_SIGPENDING). */
  processes: number;
  /** Limits of each tmpfs that the agent mounts. */
  tmpfs: { size_mib: number; inodes: number };
}

/** The kernel's own formulas, with a floor for small sandboxes. */
export function limitsFor(memoryMib: number): KernelLimits {
  const pages = memoryMib * PAGES_PER_MIB;
  const threads = Math.max(FEWEST_THREADS, memoryMib * THREADS_PER_MIB);
  const files = Math.max(FEWEST_FILES, Math.floor((memoryMib * MIB) / 10 / 1024));
  const processes = Math.floor(threads / 2);
  const socketBytes = (name: keyof typeof MAX_SOCKET_BYTES) => Math.min(MAX_SOCKET_BYTES[name], pages * 32);
  return {
    processes,
    tmpfs: { size_mib: Math.floor(memoryMib / 2), inodes: pages / 2 },
    sysctls: {
      [THREADS_MAX]: String(threads),
      "fs/file-max": String(files),
      "fs/epoll/max_user_watches": String(Math.floor((memoryMib * MIB) / 25 / EPOLL_WATCH_BYTES)),
      "net/ipv4/tcp_mem": pressure(Math.floor(pages / 16)),
      "net/ipv4/udp_mem": pressure(Math.floor(pages / 8)),
      "net/ipv4/tcp_wmem": `4096 16384 ${socketBytes("tcp_wmem")}`,
      "net/ipv4/tcp_rmem": `4096 131072 ${socketBytes("tcp_rmem")}`,
      "net/ipv4/tcp_max_tw_buckets": String(Math.max(32_768, memoryMib * 16)),
      "net/ipv4/tcp_max_orphans": String(Math.max(4096, memoryMib * 4)),
      ...Object.fromEntries(NAMESPACES.map((kind) => [`user/max_${kind}_namespaces`, String(processes)])),
    },
  };
}

/** Pages: no pressure below the first value, pressure from the second on, the third as maximum (net/ipv4/tcp.c, tcp_init_mem). */
function pressure(limit: number): string {
  return `${Math.floor(limit / 4) * 3} ${limit} ${Math.floor(limit / 4) * 6}`;
}

/** Sets the limits that are independent of the memory. */
export function setFixedLimits(): void {
  for (const [path, value] of Object.entries(FIXED_SYSCTLS)) raise(path, value);
}

let setFor = 0;

/** Sets the limits for this memory size, by default for the memory that the kernel has. Does nothing if they are set for as much. */
export function setKernelLimits(memoryMib: number | undefined): void {
  const mib = memoryMib ?? memoryOfKernel();
  if (mib <= setFor) return;
  setFor = mib;
  const { sysctls, processes, tmpfs } = limitsFor(mib);
  for (const [path, value] of Object.entries(sysctls)) raise(path, value);
  attempt(() => raiseProcesses(processes));
  attempt(() => limitTasks(lastNumber(readFileSync(`${SYSCTL}/${THREADS_MAX}`, "utf8")) - THREADS_OF_AGENT));
  for (const { target, data } of TMPFS) {
    const size = `size=${tmpfs.size_mib}m,nr_inodes=${tmpfs.inodes}`;
    attempt(() => libc.mount("tmpfs", target, "tmpfs", REMOUNT, `${data},${size}`));
  }
}

const REMOUNT = libc.MountFlag.remount | libc.MountFlag.nosuid | libc.MountFlag.nodev;
/** As boot.ts mounts them. */
const TMPFS = [
  { target: "/dev/shm", data: "mode=1777" },
  { target: "/run", data: "mode=755" },
] as const;

function memoryOfKernel(): number {
  const [, kib = "0"] = /^MemTotal:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8")) ?? [];
  return Math.floor(Number(kib) / 1024);
}

/** Writes a value unless the current one is as high. A missing sysctl is skipped. */
function raise(path: string, value: string): void {
  attempt(() => {
    const file = `${SYSCTL}/${path}`;
    if (isHigher(value, readFileSync(file, "utf8"))) writeFileSync(file, value);
  });
}

/** Compares the last numbers of both values. */
export function isHigher(requested: string, present: string): boolean {
  return lastNumber(requested) > lastNumber(present);
}

const lastNumber = (text: string) => Number(text.trim().split(/\s+/).at(-1));

/** Raises it for this process, whose children inherit it, and for programs that the template started with the previous limit. */
function raiseProcesses(most: number): void {
  for (const kind of ["processes", "pending_signals"] as const) {
    const before = libc.resourceLimit(0, kind);
    if (before >= most) continue;
    libc.setResourceLimit(0, kind, most);
    for (const name of readdirSync("/proc")) {
      const pid = Number(name);
      if (!Number.isInteger(pid) || pid === 0) continue;
      attempt(() => {
        if (libc.resourceLimit(pid, kind) === before) libc.setResourceLimit(pid, kind, most);
      }, false);
    }
  }
}

function attempt(step: () => void, isTold = true): void {
  try {
    step();
  } catch (error) {
    if (isTold) log("kernel limits", error);
  }
}

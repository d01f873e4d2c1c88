/** Boot steps that a root file system expects before its first command: mounts, the loopback interface, limits. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { mountBootId } from "./boot-id.ts";
import { makeDeviceNodes } from "./device-nodes.ts";
import { makeWorkingDirectory } from "./image-defaults.ts";
import { setFixedLimits } from "./kernel-limits.ts";
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { LOAD_MODULE } from "./runtime.ts";

interface Mount {
  type: string;
  target: string;
  flags: number;
  data: string | null;
}

const { nosuid, nodev, noexec } = libc.MountFlag;

/** In order. The initramfs has mounted the first three; existing mounts are left as they are. */
const MOUNTS: readonly Mount[] = [
  { type: "proc", target: "/proc", flags: nosuid | nodev | noexec, data: null },
  { type: "sysfs", target: "/sys", flags: nosuid | nodev | noexec, data: null },
  { type: "devtmpfs", target: "/dev", flags: nosuid, data: "mode=755" },
  { type: "devpts", target: "/dev/pts", flags: nosuid | noexec, data: "gid=5,mode=620,ptmxmode=666" },
  { type: "tmpfs", target: "/dev/shm", flags: nosuid | nodev, data: "mode=1777" },
  { type: "tmpfs", target: "/run", flags: nosuid | nodev, data: "mode=755" },
  // Every command is moved into its own cgroup; without this option each move waits for an RCU grace period.
  { type: "cgroup2", target: "/sys/fs/cgroup", flags: nosuid | nodev | noexec, data: "favordynmods" },
];

const DEVICE_LINKS = {
  "/dev/fd": "/proc/self/fd",
  "/dev/stdin": "/proc/self/fd/0",
  "/dev/stdout": "/proc/self/fd/1",
  "/dev/stderr": "/proc/self/fd/2",
} as const;

/** Enough for a server. A higher soft limit would make programs loop over every possible descriptor. */
const OPEN_FILES = { soft: 65_536, hard: 524_288 } as const;

/**
 * Percent of free memory that may be dirty before background writeback starts (25) and before writers are throttled (40). In a small guest
 * the kernel's default of 10 % is less than one command's stored output, so every byte would be written to disk before it is overwritten.
 */
const UNWRITTEN = { dirty_ratio: 40, dirty_background_ratio: 25 } as const;

/** Each step is tried independently: a guest that lacks one is still usable. */
export function boot(): void {
  for (const mount of MOUNTS) attempt(() => mountOnce(mount));
  for (const [link, target] of Object.entries(DEVICE_LINKS)) {
    attempt(() => existsSync(link) || symlinkSync(target, link));
  }
  attempt(() => mkdirSync("/run/lock", { mode: 0o1777, recursive: true }));
  // Otherwise a root file system without modprobe would have no module loader.
  attempt(() => writeFileSync("/proc/sys/kernel/modprobe", LOAD_MODULE));
  makeDeviceNodes();
  mountBootId();
  attempt(makeWorkingDirectory);
  attempt(() => libc.raiseInterface("lo"));
  attempt(() => libc.setOpenFileLimit(OPEN_FILES.soft, OPEN_FILES.hard));
  for (const [name, percent] of Object.entries(UNWRITTEN)) {
    attempt(() => writeFileSync(`/proc/sys/vm/${name}`, String(percent)));
  }
  setFixedLimits();
}

/** Whether the path is a mount point. */
function isMounted(target: string): boolean {
  if (!existsSync("/proc/self/mounts")) return false;
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .some((line) => line.split(" ")[1] === target);
}

function mountOnce({ type, target, flags, data }: Mount): void {
  if (isMounted(target)) return;
  mkdirSync(target, { recursive: true });
  libc.mount(type, target, type, flags, data);
}

function attempt(step: () => unknown): void {
  try {
    step();
  } catch (error) {
    log("boot", error);
  }
}

/** Specification of a virtual machine, as plain data. argv.ts turns it into QEMU's command line. */

import type { Identity } from "../isolation/ids.ts";
import type { OwnRoot, VisibleDirectories } from "../isolation/root.ts";

export type Acceleration = "kvm" | "tcg";

/** Properties that a template's snapshot and every guest restored from it must have in common. */
export interface Hardware {
  /** Fixed machine type, never the alias `q35`, which changes. */
  machine_type: string;
  cpu_model: string;
  /** Memory that a guest has before any is plugged. */
  base_memory_mib: number;
  /** Maximum memory that can be plugged in addition. */
  max_plugged_mib: number;
  acceleration: Acceleration;
  /** Ports for the drive's device: the first, and spares, since a device can never be unplugged after its virtiofsd has died. */
  drive_ports: number;
  /** Whether memory that the guest frees returns to the host: a balloon that is never inflated reports free pages. */
  returns_memory: boolean;
}

export interface MachineSpec {
  /** Unique on the host: the sandbox_id. */
  name: string;
  uuid: string;
  hardware: Hardware;
  /** The same as in the state that it loads. */
  vcpu_count: number;
  kernel: string;
  initramfs: string;
  /** Kernel command line. */
  append: string;
  disk: string;
  /** A second disk, a raw file that the guest can only read; most guests have none. */
  input?: string;
  sockets: { qmp: string; qmp_spare: string; console: string };
  /** QEMU's user; null: as ourselves. */
  user: Identity | null;
  /** Root file system of QEMU; null: the host's, with the rights of QEMU's user. */
  root: (OwnRoot & VisibleDirectories) | null;
  /** Device for a guest's vsock: the kernel's, opened by us, since it is root's; null for vhost-user. */
  vsock_file: string | null;
  /** Whether it starts by loading a snapshot. */
  incoming: boolean;
}

/**
 * If fast string instructions are advertised, a kernel copies byte by byte with them, which TCG does at a quarter of the usual speed. A
 * fifth level of page tables lengthens each walk of them, and the two kinds of protection discard TCG's cached address translations.
 */
const EMULATED_CPU = "max,-erms,-fsrm,-la57,-smap,-pku";

/** The processor of a guest that boots: the host's own, which TCG does not have. */
export function cpuModelFor(acceleration: Acceleration): string {
  return acceleration === "kvm" ? "host" : EMULATED_CPU;
}

/** The newest machine type that all QEMUs of a major version have. 8.2 is the oldest that loads a snapshot from a file. */
export function machineTypeFor(qemuVersion: string | null): string {
  return Number.parseInt(qemuVersion ?? "", 10) >= 10 ? "pc-q35-10.0" : "pc-q35-8.2";
}
/** The least memory that a template is saved with. */
export const BASE_MEMORY_MIB = 256;
/** A template's saved memory, and pluggable memory, are multiples of the guest's own blocks. */
export const MEMORY_GRAIN_MIB = 128;
/** virtio-mem plugs in blocks of this size. */
export const MEMORY_BLOCK_MIB = 2;

/** Ports of new templates: two spares. Each more costs every start some 10 ms, the pool's quick ones too. */
export const DRIVE_PORTS = 3;
export const VSOCK_PORT = "port-vsock";

/** Port of the drive's device, the first time (0) and each time after its virtiofsd has died. */
export function drivePort(turn: number): string {
  return turn === 0 ? "port-drive" : `port-spare${turn === 1 ? "" : turn}`;
}

/** Ports of devices that come and go. The guest probes the last first, and needs its vsock soonest. */
export function portsOf({ drive_ports }: Hardware): string[] {
  return [...Array.from({ length: drive_ports }, (_, turn) => drivePort(turn)), VSOCK_PORT];
}

/**
 * During a guest's start, compilation is spent on code that runs once, and under TCG each instruction of that is translated first: so the
 * agent's code is compiled only after it has run long, as the code of streams has. Garbage is collected when the heap has grown, and seldom
 * otherwise. The kernel passes unknown parameters to the first process as its environment.
 */
const AGENT_RUNTIME = [
  ...["JITAfterWarmUp", "JITSoon"].map((name) => `BUN_JSC_thresholdFor${name}=20000`),
  // A second, optimizing compilation takes longest of all, and runs alongside commands: only for code that runs ten times as long.
  ...["OptimizeAfterWarmUp", "OptimizeAfterLongWarmUp", "OptimizeSoon"].map(
    (name) => `BUN_JSC_thresholdFor${name}=200000`,
  ),
  "BUN_GC_TIMER_INTERVAL=30000",
];

/**
 * An emulated processor does not speculate, and each indirect call costs three jumps with retpolines. The others harden the guest's kernel
 * against the guest's own programs; nothing of ours relies on that, and they cost a tenth of every command.
 */
const EMULATED = [
  "mitigations=off",
  "psi=0",
  "init_on_alloc=0",
  "randomize_kstack_offset=off",
  "hardened_usercopy=off",
  "noautogroup",
  "lsm=landlock,yama",
  "audit=0",
  // On a busy host the kernel may detect no timer, and then panics. Under KVM the kernel does not check the timer either.
  "no_timer_check",
];

export function kernelAppend(acceleration: Acceleration): string {
  return [
    "console=ttyS0",
    "root=/dev/vda",
    "rw",
    "quiet",
    "panic=-1",
    // Room for hotplugged memory makes the kernel reserve 64 MiB of bounce buffers, which no device here needs.
    "swiotlb=noforce",
    "memhp_default_state=online",
    "memory_hotplug.memmap_on_memory=1",
    // A guest returns freed memory in pieces of 2^4 pages and more. The default is 2^9, which the memory of exiting programs seldom fills.
    "page_reporting.page_reporting_order=4",
    "random.trust_cpu=on",
    ...(acceleration === "tcg" ? EMULATED : []),
    ...AGENT_RUNTIME,
  ].join(" ");
}

/**
 * Capabilities of the host: acceleration, vsock, programs, memory. Acceleration is known only by booting: a /dev/kvm that opens may still
 * run no kernel.
 */
import { existsSync, type FSWatcher, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { monotonicMs, startInterval, startTimer, stopTimer } from "../core/clock.ts";
import { BOOT_ID } from "./boot.ts";
import { asUser } from "./isolation/argv.ts";
import type { Identity } from "./isolation/ids.ts";
import type { Acceleration } from "./machine/spec.ts";
import { endProcess, runProgram, startProcess } from "./process.ts";
import { usageOfProcess } from "./usage.ts";

const KVM = "/dev/kvm";
/**
 * A kernel that boots prints something new within this, or at least uses processor time, as on a nested host that is busy with its own
 * start. A kernel that KVM does not run does neither: QEMU has stopped it.
 */
const SILENT_MS = 5_000;
/** Timeout of a probe that is active, but without a result. */
const STALLED_MS = 60_000;
/** It panics for lack of a root disk within this: a second on a real host, half a minute and more on an emulated one. */
const DEADLINE_MS = 300_000;
/** Retries after it ended on its own. */
const TRIES_AGAIN = 2;
/** Printing a version takes milliseconds, on a host that has just booted more. */
const VERSION_DEADLINE_MS = 30_000;
/** Printed by a kernel that got as far as looking for its root disk. */
const PROBE_REACHED = "Kernel panic";

export interface ProbeResult {
  acceleration: Acceleration;
  /** One sentence for /health and doctor. */
  reason: string;
  /** Remedy for this very reason. */
  remedy?: string;
  /** There was no kernel to boot: once there is one, the probe is to be repeated. */
  pending?: boolean;
}

/** For a /dev/kvm that exists, but is closed to the users of guests' QEMU. */
export const KVM_CLOSED = {
  reason: "The users of guests' QEMU cannot open /dev/kvm",
  remedy:
    "Give /dev/kvm a group and mode 660 (or 666) by a udev rule, as QEMU's packages do. In a container, pass the device in as well.",
} as const;
/** QEMU's message then. */
const SAID_CLOSED = /Could not access KVM kernel module: (.+)/;

export interface ProbeOptions {
  qemu: string;
  kernel: string | null;
  cacheFile: string;
  scratch: string;
  /** User of guests' QEMU; null: as ourselves. */
  user: Identity | null;
  device?: string;
  silentMs?: number;
  stalledMs?: number;
  deadlineMs?: number;
}

/** Boots `kernel` under KVM for as long as it makes progress. A boot's result is valid until the host boots again. */
export async function probeAcceleration(options: ProbeOptions): Promise<ProbeResult> {
  const known = knownAcceleration(options);
  if (known) return known;
  let tried = await bootProbe(options);
  // A guest that ends on its own may have met a transient fault, in a nested host most of all; a guest that hangs has not.
  for (let again = 0; tried.endedItself && again < TRIES_AGAIN; again++) tried = await bootProbe(options);
  const { closed, endedItself: _, ...result } = tried;
  if (!closed) writeFileSync(options.cacheFile, JSON.stringify({ boot_id: BOOT_ID, ...result }));
  return result;
}

/** The result that is known without booting; null if a guest has to be booted to find out. */
export function knownAcceleration(options: Pick<ProbeOptions, "kernel" | "cacheFile" | "device">): ProbeResult | null {
  if (!existsSync(options.device ?? KVM)) return { acceleration: "tcg", reason: "There is no /dev/kvm on this host." };
  if (options.kernel === null) {
    const reason = "Acceleration is not known yet: the first template brings the kernel that is booted to find out.";
    return { acceleration: "tcg", reason, pending: true };
  }
  return readCache(options.cacheFile, BOOT_ID);
}

interface Tried extends ProbeResult {
  /** Nothing was booted because the device could not be opened, which may be corrected at any time. */
  closed: boolean;
  /** It did not boot, and was not aborted by us. */
  endedItself: boolean;
}

async function bootProbe(options: ProbeOptions): Promise<Tried> {
  const { qemu, kernel, scratch, user, silentMs = SILENT_MS } = options;
  const { stalledMs = STALLED_MS, deadlineMs = DEADLINE_MS } = options;
  const log = join(scratch, "probe.log");
  rmSync(log, { force: true });
  const hardware = ["-accel", "kvm", "-machine", "q35", "-cpu", "host", "-m", "256", "-nodefaults", "-no-user-config"];
  // The guest's console, and QEMU's messages, both go to the log.
  const guest = ["-no-reboot", "-display", "none", "-serial", "stdio", "-kernel", kernel ?? ""];
  const argv = [qemu, ...hardware, ...guest, "-append", "earlyprintk=ttyS0 console=ttyS0 panic=-1"];
  const probe = startProcess("qemu", user ? asUser(user, argv) : argv, log);
  const startedAt = monotonicMs();
  let givenUp = false;
  const giveUp = () => {
    givenUp = true;
    void endProcess(probe);
  };
  const deadline = startTimer(giveUp, deadlineMs);
  let worked = 0;
  const silence = startInterval(() => {
    const before = worked;
    worked = secondsOf(probe.pid);
    if (worked <= before) giveUp();
  }, silentMs);
  const stall = startTimer(giveUp, stalledMs);
  const watcher = watchOrNot(log, () => {
    silence.refresh();
    stall.refresh();
  });
  // Without a watcher silence cannot be detected.
  if (!watcher) stopTimer(silence);
  await probe.exited;
  watcher?.close();
  stopTimer(deadline);
  stopTimer(stall);
  stopTimer(silence);
  const seconds = ((monotonicMs() - startedAt) / 1000).toFixed(1);
  const printed = existsSync(log) ? readFileSync(log, "utf8") : "";
  if (printed.includes(PROBE_REACHED)) {
    return { acceleration: "kvm", reason: "A probe guest booted under KVM.", closed: false, endedItself: false };
  }
  const closed = SAID_CLOSED.exec(printed);
  if (closed) {
    const { reason, remedy } = KVM_CLOSED;
    return {
      acceleration: "tcg",
      reason: `${reason} (${closed[1]?.slice(0, 200)}).`,
      remedy,
      closed: true,
      endedItself: false,
    };
  }
  const errorLine = printed
    .split("\n")
    .find((line) => line.startsWith("qemu"))
    ?.slice(0, 200);
  return {
    acceleration: "tcg",
    reason: `/dev/kvm exists, but a probe guest did not boot with it: it ${givenUp ? "timed out" : "ended"} after ${seconds} s${errorLine ? ` (${errorLine})` : ""}.`,
    closed: false,
    endedItself: !givenUp,
  };
}

/** Processor time of the process until now; 0 when it has ended. */
function secondsOf(pid: number): number {
  try {
    return usageOfProcess(pid).cpu_seconds;
  } catch {
    return 0;
  }
}

/** Null if the host has no watch left. */
function watchOrNot(file: string, onChange: () => void): FSWatcher | null {
  try {
    return watch(file, onChange);
  } catch {
    return null;
  }
}

function readCache(file: string, boot: string): ProbeResult | null {
  try {
    const cached = JSON.parse(readFileSync(file, "utf8")) as ProbeResult & { boot_id: string };
    if (cached.boot_id !== boot) return null;
    return { acceleration: cached.acceleration, reason: cached.reason };
  } catch {
    return null;
  }
}

/** Whether the host is itself a virtual machine, according to its processor. */
export function isVirtualMachine(): boolean {
  return /^flags\s*:.*\bhypervisor\b/m.test(readFileSync("/proc/cpuinfo", "utf8"));
}

export interface HostFacts {
  cores: number;
  memory_mib: number;
}

export function hostFacts(): HostFacts {
  return { cores: cpus().length, memory_mib: Math.floor(totalmem() / 1024 / 1024) };
}

/** Paths at which setup, and distributions, install the Rust virtiofsd; the first that exists. */
export function findVirtiofsd(configured: string): string | null {
  if (configured !== "auto") return existsSync(configured) ? configured : null;
  // QEMU up to 7.2 came with an older virtiofsd under /usr/lib/qemu, which takes other options: never that one.
  const places = ["/usr/local/lib/roomd/virtiofsd", "/usr/libexec/virtiofsd", "/usr/bin/virtiofsd"];
  return places.find((place) => existsSync(place)) ?? null;
}

/** The version that a program reports, or null if it does not run. */
export async function programVersion(program: string): Promise<string | null> {
  try {
    const text = await runProgram([program, "--version"], VERSION_DEADLINE_MS);
    return /\d+\.\d+(\.\d+)?/.exec(text)?.[0] ?? text.split("\n")[0] ?? null;
  } catch {
    return null;
  }
}

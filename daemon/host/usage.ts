/** Current usage, as the kernel reports it: of a process, of this one, and of the host as a whole. */
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
import { cpus, totalmem } from "node:os";

/** USER_HZ, which is 100 on every Linux that runs KVM. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;
const MIB = 1024 ** 2;

/** Fields 14, 15 and 24 of /proc/<pid>/stat. Throws when the process has ended. */
export function usageOfProcess(pid: number): { cpu_seconds: number; resident_bytes: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const cpu_seconds = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  return { cpu_seconds, resident_bytes: Number(fields[21]) * PAGE_BYTES };
}

/** Processor time of the host since it started, and its memory. */
export function usageOfHost() {
  const all = cpus();
  const sumOf = (kind: (times: (typeof all)[number]["times"]) => number) =>
    all.reduce((sum, { times }) => sum + kind(times), 0) / 1000;
  return {
    cores: all.length,
    busy_seconds: sumOf(({ user, nice, sys, irq }) => user + nice + sys + irq),
    idle_seconds: sumOf(({ idle }) => idle),
    memory_bytes: totalmem(),
    memory_available_bytes: availableMemoryMib() * MIB,
  };
}

/** Memory that the host could give to guests now, in MiB. */
export function availableMemoryMib(): number {
  const match = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"));
  return match ? Math.floor(Number(match[1]) / 1024) : 0;
}

/** Size of one read about a process. */
const read = Buffer.alloc(256);

/** Current host memory of a process, in MiB; 0 if it has ended. Cheap: it is read for all guests one after another. */
export function residentMemoryMib(pid: number): number {
  try {
    const file = openSync(`/proc/${pid}/statm`, "r");
    try {
      const [, pages] = read.toString("latin1", 0, readSync(file, read)).split(" ");
      return Math.floor((Number(pages) * PAGE_BYTES) / MIB);
    } finally {
      closeSync(file);
    }
  } catch {
    return 0;
  }
}

/** Number of files and connections that this process has open. */
export function openFiles(): number {
  // Linux 6.2 and newer report it as the directory's size, which costs nothing.
  return statSync("/proc/self/fd").size || readdirSync("/proc/self/fd").length;
}

/** The maximum of open files and connections; null: unlimited. */
export function mostOpenFiles(): number | null {
  const most = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
  return most === undefined ? null : Number(most);
}

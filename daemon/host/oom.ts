/** Memory shortage of the host and its guests: which processes the kernel kills first, and whether it has killed one. */
import { closeSync, constants, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import type { ProcessRecord } from "./process.ts";

/** Of 1000: the kernel kills a guest before the daemon, and before any process that is not larger by half of the host's memory. */
const GUEST_SCORE = 500;
/** USER_HZ, which is 100 on every Linux that runs KVM. */
const TICKS_PER_SECOND = 100;
const RECORD_BYTES = 8192;

/** Makes a process a preferred victim if the host runs out of memory. */
export function offerToOomKiller(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(GUEST_SCORE));
  } catch {
    // It has exited immediately, or the host does not permit it: then it is like any other.
  }
}

/**
 * Whether the kernel's log reports that it killed this process for lack of memory. Only a report counts: a log that cannot be read, or that
 * has other pids as from inside a container, contains none.
 */
export function wasOomKilled({ pid, start_ticks }: ProcessRecord): boolean {
  if (!hasKilled()) return false;
  const startedAtUs = (Number(start_ticks) / TICKS_PER_SECOND - 1) * 1e6;
  const killed = new RegExp(`^\\d+,\\d+,(\\d+),[^;]*;.*[Oo]ut of memory.*: Killed process ${pid} \\(`);
  return kernelLog().some((record) => Number(killed.exec(record)?.[1] ?? -1) >= startedAtUs);
}

/** Whether the kernel has killed a process for lack of memory since boot: mostly not, and then its log need not be read. */
function hasKilled(): boolean {
  return !/^oom_kill 0$/m.test(readFileSync("/proc/vmstat", "utf8"));
}

/** The records of /dev/kmsg: `level,seq,microseconds,flags;text`, one with each read. */
function kernelLog(): string[] {
  const records: string[] = [];
  let file: number;
  try {
    file = openSync("/dev/kmsg", constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return records;
  }
  try {
    const buffer = Buffer.alloc(RECORD_BYTES);
    for (;;) {
      const length = readSync(file, buffer);
      if (length === 0) return records;
      records.push(buffer.toString("utf8", 0, length).split("\n")[0] ?? "");
    }
  } catch {
    // EAGAIN: the previous record was the last.
    return records;
  } finally {
    closeSync(file);
  }
}

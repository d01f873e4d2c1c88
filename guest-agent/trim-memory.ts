/**
 * Reduces a template's memory, since each of its clones has all of it: evicts pages that were needed only for the boot, and zeros free
 * memory, since only non-zero pages are saved.
 *
 *     drop page cache, the agent's own code as well ─▶ touch pages that are needed again ─▶ fill free memory with zeros
 */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import * as libc from "./libc.ts";
import { log } from "./log.ts";

const PLACE = "/run/roomd-zeros";
/**
 * Memory left free for this and other processes, at least; otherwise four times the kernel's minimum of free memory, below which it would
 * evict touched pages.
 */
const LEFT_KIB = 12 * 1024;
const KEPT_FREE = "/proc/sys/vm/min_free_kbytes";
const ZEROS = new Uint8Array(1024 * 1024);

/** `touch` does the work of clones: the pages that it uses are resident afterwards, and others are read from the disk on demand. */
export async function trimMemory(touch: () => Promise<void>): Promise<void> {
  libc.syncRoot();
  const code = ownCode();
  advise(code, "pageout");
  // Disables readahead around touched pages.
  advise(code, "random");
  try {
    writeFileSync("/proc/sys/vm/drop_caches", "3\n");
    await touch();
  } finally {
    advise(code, "normal");
    Bun.gc(true);
    zeroFreeMemory();
  }
}

/** A mapping that does not support the advice stays as it is. */
function advise(code: readonly Mapping[], advice: Parameters<typeof libc.adviseMemory>[2]): void {
  for (const { from, to } of code) {
    try {
      libc.adviseMemory(from, to, advice);
    } catch (error) {
      log(`advice ${advice}`, error);
    }
  }
}

interface Mapping {
  from: bigint;
  to: bigint;
}

/** Mappings of this program and its libraries that are unmodified file contents. */
function ownCode(): Mapping[] {
  const lines = readFileSync("/proc/self/maps", "utf8").split("\n");
  return lines.flatMap((line) => {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) r-[-x]p .* \//.exec(line) ?? [];
    return from === undefined ? [] : [{ from: BigInt(`0x${from}`), to: BigInt(`0x${to}`) }];
  });
}

function zeroFreeMemory(): void {
  mkdirSync(PLACE, { recursive: true });
  libc.mount("zeros", PLACE, "tmpfs", 0, "size=100%");
  try {
    const file = openSync(`${PLACE}/zeros`, "w");
    try {
      // The amount is computed beforehand: the kernel reclaims memory from programs to keep some free, so writing until none is free would
      // not end.
      const spared = Math.max(LEFT_KIB, 4 * Number(readFileSync(KEPT_FREE, "utf8")));
      for (let left = (freeKib() - spared) * 1024; left > 0; left -= ZEROS.byteLength) writeSync(file, ZEROS);
    } finally {
      closeSync(file);
    }
  } finally {
    libc.unmount(PLACE);
  }
}

function freeKib(): number {
  return Number(/^MemFree:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1] ?? 0);
}

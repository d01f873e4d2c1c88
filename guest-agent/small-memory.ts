/**
 * Owns making a template small, since each of its clones has all of its memory: without what was needed once, to come up, and with zeros
 * where memory is free, since all but zeros is saved.
 *
 *   drop what the disk has too, the agent's own code as well ─▶ touch what is needed again ─▶ fill what is free with zeros
 */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import * as libc from "./libc.ts";
import { log } from "./log.ts";

const PLACE = "/run/roomd-zeros";
/** What this and others need meanwhile, at least; else four times what the kernel keeps free, which drops what was touched to have it. */
const LEFT_KIB = 12 * 1024;
const KEPT_FREE = "/proc/sys/vm/min_free_kbytes";
const ZEROS = new Uint8Array(1024 * 1024);

/** `touch` does what clones do: what that runs is there afterwards, and what it does not run comes from the disk where it is needed. */
export async function makeMemorySmall(touch: () => Promise<void>): Promise<void> {
  libc.syncRoot();
  const code = ownCode();
  advise(code, "pageout");
  // What lies beside a page that is touched is not brought along.
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

/** Where a mapping takes no advice it stays as it is. */
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

/** What of this program and its libraries is mapped as it is in their files. */
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
      // Counted out beforehand: the kernel takes memory from programs to keep some free, and it would never be enough.
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

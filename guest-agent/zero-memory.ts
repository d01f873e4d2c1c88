/** Owns making a template small: memory that is free still holds what was in it, and all but zeros is saved. */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import * as libc from "./libc.ts";

const PLACE = "/run/roomd-zeros";
/** What the kernel keeps free anyway, and what this and others need meanwhile. */
const LEFT_KIB = 32 * 1024;
const ZEROS = new Uint8Array(1024 * 1024);

/** Drops what is cached and can be read again, then fills what is free with zeros and frees it. */
export function zeroFreeMemory(): void {
  libc.syncRoot();
  writeFileSync("/proc/sys/vm/drop_caches", "3\n");
  mkdirSync(PLACE, { recursive: true });
  libc.mount("zeros", PLACE, "tmpfs", 0, "size=100%");
  try {
    const file = openSync(`${PLACE}/zeros`, "w");
    try {
      // Counted out beforehand: the kernel takes memory from programs to keep some free, and it would never be enough.
      for (let left = (freeKib() - LEFT_KIB) * 1024; left > 0; left -= ZEROS.byteLength) writeSync(file, ZEROS);
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

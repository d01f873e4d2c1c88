/** Owns which boot of the host this is: pids and clock ticks begin anew with each. */
import { readFileSync } from "node:fs";

/** The kernel's own name for it, another one at every boot. */
export const BOOT_ID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

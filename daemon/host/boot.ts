/** Identifies the host's current boot: pids and clock ticks start again with each. */
import { readFileSync } from "node:fs";

/** The kernel's own name for it, another one at every boot. */
export const BOOT_ID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

/** The host's current boot: its id and the time since then. Pids and clock ticks start again with each boot. */
import { readFileSync } from "node:fs";
import { monotonicMs } from "../core/clock.ts";

/** The kernel's boot ID, new at every boot. */
export const BOOT_ID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

/** Uptime of the host at the zero of the monotonic clock, exact to 10 ms. */
const zeroMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000 - monotonicMs();

/** Uptime of the host in whole milliseconds; a suspension of the host since the daemon's start is not counted. */
export const uptimeMs = () => Math.round(zeroMs + monotonicMs());

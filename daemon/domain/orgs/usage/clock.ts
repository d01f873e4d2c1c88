/** The clock of this host as the meter reads it. */
import { readFileSync } from "node:fs";
import { wallMs } from "../../../core/clock.ts";
import { BOOT_ID } from "../../../host/boot.ts";
import { dayAt, type MeterClock } from "./moment.ts";

/** Its uptime is told to 10 ms. */
export function hostClock(): MeterClock {
  return {
    now: () => {
      const [uptime] = readFileSync("/proc/uptime", "utf8").split(" ");
      return { wall_ms: wallMs(), uptime_ms: Math.round(Number(uptime) * 1000), boot_id: BOOT_ID };
    },
    today: () => dayAt(wallMs()),
  };
}

/** Current moment for the meter. */
import { wallMs } from "../../../core/clock.ts";
import { BOOT_ID, uptimeMs } from "../../../host/boot.ts";
import type { Moment } from "./moment.ts";

export const momentNow = (): Moment => ({ wall_ms: wallMs(), uptime_ms: uptimeMs(), boot_id: BOOT_ID });

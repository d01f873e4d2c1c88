/** Prices in credits: the price table of the configuration, applied to metered amounts. Pure except for reading the configuration. */
import type { Config } from "../../../core/config/config.ts";
import type { Amounts, Rate } from "./amounts.ts";

/** Whole credits for each unit. */
export interface Prices {
  sandbox_hour: number;
  vcpu_hour: number;
  memory_gib_hour: number;
  egress_gib: number;
  drive_gib_month: number;
}

export const FREE: Prices = { sandbox_hour: 0, vcpu_hour: 0, memory_gib_hour: 0, egress_gib: 0, drive_gib_month: 0 };

export function pricesOf(config: Config): Prices {
  return {
    sandbox_hour: config["billing.sandbox_hour"],
    vcpu_hour: config["billing.vcpu_hour"],
    memory_gib_hour: config["billing.memory_gib_hour"],
    egress_gib: config["billing.egress_gib"],
    drive_gib_month: config["billing.drive_gib_month"],
  };
}

export const MICRO = 1_000_000;
const HOUR_MS = 3_600_000;
const GIB = 1024 ** 3;
/** Every month counts as 730 hours, so that each hour costs the same. */
const MONTH_HOURS = 730;

/** Cost in millionths of a credit, as an integer. */
export function microOf(prices: Prices, amounts: Partial<Amounts>): number {
  const { sandbox_ms = 0, vcpu_ms = 0, memory_mib_ms = 0, egress_bytes = 0, drive_byte_hours = 0 } = amounts;
  const credits =
    (sandbox_ms * prices.sandbox_hour + vcpu_ms * prices.vcpu_hour) / HOUR_MS +
    (memory_mib_ms * prices.memory_gib_hour) / (1024 * HOUR_MS) +
    (egress_bytes * prices.egress_gib) / GIB +
    (drive_byte_hours * prices.drive_gib_month) / (GIB * MONTH_HOURS);
  return Math.round(credits * MICRO);
}

/** Cost per hour in millionths of a credit. */
export function microPerHour(prices: Prices, { vcpu_count, memory_mib, drive_bytes }: Rate): number {
  if (drive_bytes > 0) return microOf(prices, { drive_byte_hours: drive_bytes });
  const [sandbox_ms, vcpu_ms, memory_mib_ms] = [HOUR_MS, vcpu_count * HOUR_MS, memory_mib * HOUR_MS];
  return microOf(prices, { sandbox_ms, vcpu_ms, memory_mib_ms });
}

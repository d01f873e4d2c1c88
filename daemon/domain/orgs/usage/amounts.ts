/** Metered amounts, as integers, so that parts always add up. Pure. */

export const AMOUNTS = [
  "sandbox_ms",
  "vcpu_ms",
  "memory_mib_ms",
  "exec_count",
  "messages",
  "egress_bytes",
  "drive_byte_hours",
  "build_ms",
] as const;
export type Amounts = Record<(typeof AMOUNTS)[number], number>;

export const NOTHING: Readonly<Amounts> = Object.freeze({
  sandbox_ms: 0,
  vcpu_ms: 0,
  memory_mib_ms: 0,
  exec_count: 0,
  messages: 0,
  egress_bytes: 0,
  drive_byte_hours: 0,
  build_ms: 0,
});

/** Consumption per time, of a running sandbox or of a drive. */
export interface Rate {
  vcpu_count: number;
  memory_mib: number;
  drive_bytes: number;
}

const HOUR_MS = 3_600_000;

export function amountsOver({ vcpu_count, memory_mib, drive_bytes }: Rate, ms: number): Partial<Amounts> {
  if (drive_bytes > 0) return { drive_byte_hours: Math.round((drive_bytes * ms) / HOUR_MS) };
  return { sandbox_ms: ms, vcpu_ms: vcpu_count * ms, memory_mib_ms: memory_mib * ms };
}

export function add(sum: Amounts, more: Partial<Amounts>): void {
  for (const name of AMOUNTS) sum[name] += more[name] ?? 0;
}

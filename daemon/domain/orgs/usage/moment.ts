/**
 * Time of metering. Durations use the host's uptime, which is unaffected by clock changes and common to all daemons of one boot; the clock
 * only determines the days.
 */

export interface Moment {
  wall_ms: number;
  uptime_ms: number;
  boot_id: string;
}

const DAY_MS = 86_400_000;
/** Maximum counted over a reboot: the clock may have been set in between, from 1970 if its battery was dead. */
const MAX_OVER_REBOOT_MS = 31 * DAY_MS;

export interface Elapsed {
  /** Never less than none. */
  ms: number;
  /** Time by the clock that exceeds the counted time. */
  beyond_ms: number;
}

/** The time between two moments. Over a reboot only the clock can determine it. */
export function elapsed(from: Moment, to: Moment): Elapsed {
  if (from.boot_id === to.boot_id) return { ms: Math.max(0, to.uptime_ms - from.uptime_ms), beyond_ms: 0 };
  const shown = Math.max(0, to.wall_ms - from.wall_ms);
  const ms = Math.min(shown, MAX_OVER_REBOOT_MS);
  return { ms, beyond_ms: shown - ms };
}

/** The day in UTC, such as 2026-01-31. */
export function dayAt(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

/** Splits an interval of `ms` that ended at `endMs` into days, each with its share. */
export function* daysOf(endMs: number, ms: number): Generator<{ day: string; ms: number }> {
  for (let from = endMs - ms; from < endMs; ) {
    const to = Math.min(endMs, (Math.floor(from / DAY_MS) + 1) * DAY_MS);
    yield { day: dayAt(from), ms: to - from };
    from = to;
  }
}

/**
 * Owns when something is metered. How long it took is told by the time that the host has been up, which no setting of the clock
 * changes and every daemon of one boot shares; the clock only says on which days it was.
 */

export interface Moment {
  wall_ms: number;
  uptime_ms: number;
  boot_id: string;
}

const DAY_MS = 86_400_000;
/** Counted over a reboot at most: the clock may have been set in between, from 1970 where its battery was dead. */
const MOST_OVER_REBOOT_MS = 31 * DAY_MS;

export interface Elapsed {
  /** Never less than none. */
  ms: number;
  /** What the clock shows beyond what is counted. */
  beyond_ms: number;
}

/** The time between two moments. Over a reboot the clock is all that there is to tell it. */
export function elapsed(from: Moment, to: Moment): Elapsed {
  if (from.boot_id === to.boot_id) return { ms: Math.max(0, to.uptime_ms - from.uptime_ms), beyond_ms: 0 };
  const shown = Math.max(0, to.wall_ms - from.wall_ms);
  const ms = Math.min(shown, MOST_OVER_REBOOT_MS);
  return { ms, beyond_ms: shown - ms };
}

/** The day in UTC, as 2026-01-31. */
export function dayAt(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

/** The days on which a time of `ms` was that ended at `endMs`, with how much of it. */
export function* daysOf(endMs: number, ms: number): Generator<{ day: string; ms: number }> {
  for (let from = endMs - ms; from < endMs; ) {
    const to = Math.min(endMs, (Math.floor(from / DAY_MS) + 1) * DAY_MS);
    yield { day: dayAt(from), ms: to - from };
    from = to;
  }
}

/** Durations on command lines, of `roomd` on the host and of `room` in a guest. */

const MS_OF = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Error text for an invalid duration. */
export const DURATION_FORM = "It must be a time such as 500ms, 90s, 15m, 24h or 7d; a bare number is seconds.";

/** Milliseconds; null for an invalid duration. */
export function parseDuration(text: string): number | null {
  const [, count, unit = "s"] = /^(\d{1,9})(ms|s|m|h|d)?$/.exec(text) ?? [];
  return count === undefined ? null : Number(count) * MS_OF[unit as keyof typeof MS_OF];
}

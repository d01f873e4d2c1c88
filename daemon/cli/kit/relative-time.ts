/** Relative times for people: how long ago, or in how long. */

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
] as const;

/** `3 min ago`, `in 2 h`, `now`; an unparsable text stays as it is, and null stays null. */
export function ago(at: string | null, now = Date.now()): string | null {
  const ms = now - Date.parse(at ?? "");
  if (at === null || Number.isNaN(ms)) return at;
  const unit = UNITS.find(([, length]) => Math.abs(ms) >= length);
  if (!unit) return "now";
  const text = `${Math.floor(Math.abs(ms) / unit[1])} ${unit[0]}`;
  return ms > 0 ? `${text} ago` : `in ${text}`;
}

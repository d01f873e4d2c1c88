/** Owns the one line that an item is told in. Pure. */

/** How the two ends of a standby are told, by which they are joined; on disk it is a hibernation. */
export const STANDBY = { begun: "standby", onDisk: "hibernation", over: "resumed" } as const;
export const DESTROYED = { sandbox: "sandbox destroyed", failed: "sandbox failed", room: "room destroyed" } as const;

const MOST_CHARACTERS = 200;

/** Spaces, line ends and what steers a terminal. */
const BLANK = /[\s\p{Cc}\p{Zl}\p{Zp}]+/gu;

/** One line without control characters, cut where it is long. */
export function line(text: string): string {
  const flat = text
    .slice(0, MOST_CHARACTERS * 4)
    .replace(BLANK, " ")
    .trim();
  if (flat.length <= MOST_CHARACTERS) return flat;
  // Half of a character of two parts is none.
  return `${flat.slice(0, MOST_CHARACTERS - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

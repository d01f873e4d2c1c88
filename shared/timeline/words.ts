/** The one-line text of an item of a room's timeline. Pure. */

/** Texts of the two ends of a standby, by which they are joined; on disk it is a hibernation. */
export const STANDBY = { begun: "standby", onDisk: "hibernation", over: "resumed" } as const;
export const DESTROYED = { sandbox: "sandbox destroyed", failed: "sandbox failed", room: "room destroyed" } as const;

const MAX_CHARACTERS = 200;

/** Spaces, line ends and control characters for terminals. */
const BLANK = /[\s\p{Cc}\p{Zl}\p{Zp}]+/gu;

/** One line without control characters, truncated if it is long. */
export function line(text: string): string {
  const flat = text
    .slice(0, MAX_CHARACTERS * 4)
    .replace(BLANK, " ")
    .trim();
  if (flat.length <= MAX_CHARACTERS) return flat;
  // Removes half of a surrogate pair.
  return `${flat.slice(0, MAX_CHARACTERS - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

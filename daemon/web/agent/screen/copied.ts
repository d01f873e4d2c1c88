/** Owns what a program at a screen has copied, as a person may see and take it: text of a bounded length, in which nothing is hidden. */
import { visible } from "../../parts/visible.ts";

/** More is in no clipboard that somebody reads; a guest may copy without end. */
export const MOST_COPIED = 64 * 1024;

export interface Copied {
  text: string;
  /** How many characters were left out at its end. */
  left: number;
}

/** What would act where it is pasted, such as an escape sequence in a terminal, is a sign here. */
export function copiedOf(given: string): Copied {
  const isWhole = given.length <= MOST_COPIED;
  // Not within a character of two halves.
  const end = isWhole || !isHighHalf(given.charCodeAt(MOST_COPIED - 1)) ? MOST_COPIED : MOST_COPIED - 1;
  const kept = given.slice(0, end);
  return { text: visible(kept.replaceAll("\r\n", "\n")), left: given.length - kept.length };
}

const isHighHalf = (code: number) => code >= 0xd800 && code < 0xdc00;

/** Text that a program has copied on a screen, as the user may see and copy it: bounded in length, without hidden characters. */
import { visible } from "../../components/visible.ts";

/** No clipboard text for people is longer; a guest may copy without limit. */
export const MAX_COPIED = 64 * 1024;

export interface Copied {
  text: string;
  /** Number of characters truncated from the end of the text. */
  left: number;
}

/** Characters that would act when pasted, such as an escape sequence in a terminal, are replaced by visible signs. */
export function copiedOf(given: string): Copied {
  const isWhole = given.length <= MAX_COPIED;
  // Does not split a surrogate pair.
  const end = isWhole || !isHighHalf(given.charCodeAt(MAX_COPIED - 1)) ? MAX_COPIED : MAX_COPIED - 1;
  const kept = given.slice(0, end);
  return { text: visible(kept.replaceAll("\r\n", "\n")), left: given.length - kept.length };
}

const isHighHalf = (code: number) => code >= 0xd800 && code < 0xdc00;

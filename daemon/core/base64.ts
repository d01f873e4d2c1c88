/** Validation of long base64 texts in steps. */
import type { Steps } from "./loop/index.ts";

/** A step decodes as many: a tenth of a millisecond. */
const CHARACTERS = 256 * 1024;

/** Whether Uint8Array.fromBase64 decodes the text: padding is optional, white space is ignored. */
export function* isBase64(text: string): Steps<boolean> {
  const bytes = new Uint8Array((CHARACTERS / 4) * 3 + 3);
  const padding = text.indexOf("=");
  // The padding and all after it are of the last part: the decoder checks that it is the end.
  const end = padding === -1 ? text.length : padding;
  try {
    for (let at = 0; at < text.length; ) {
      const isLast = at + CHARACTERS >= end;
      const part = text.slice(at, isLast ? undefined : at + CHARACTERS);
      const { read } = bytes.setFromBase64(part, isLast ? {} : { lastChunkHandling: "stop-before-partial" });
      // White space alone.
      if (!isLast && read === 0) return false;
      at += isLast ? part.length : read;
      yield;
    }
    return true;
  } catch {
    return false;
  }
}

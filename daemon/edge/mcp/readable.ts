/** The part of a file that an answer may show. */
import { textOf } from "../../core/text.ts";
import { firstOf } from "./output-text.ts";

/** Maximum as JSON, in which control characters take six bytes each. */
const MAX_ESCAPED = 36_000;
/** As base64. */
const MAX_BINARY = 24 * 1024;

/** The first bytes that fit, cut between characters; `isEnd`: `bytes` reach the end of the file. */
export function readable(bytes: Buffer, isEnd: boolean): Buffer {
  let shown = isEnd ? bytes : wholeCharacters(bytes);
  if (textOf(shown) === null) return bytes.subarray(0, MAX_BINARY);
  while (Buffer.byteLength(JSON.stringify(shown.toString())) > MAX_ESCAPED) shown = firstOf(shown, shown.length >> 1);
  return shown;
}

/** Removes an incomplete last character. */
function wholeCharacters(bytes: Buffer): Buffer {
  for (let cut = 0; cut < 4 && cut < bytes.length; cut++) {
    const shorter = bytes.subarray(0, bytes.length - cut);
    if (textOf(shorter) !== null) return shorter;
  }
  return bytes;
}

/** Bytes passed as text or base64, decoded in pieces of the event loop. */
import type { PieceTurns } from "../loop/index.ts";

export interface Content {
  text: string;
  encoding: "utf8" | "base64";
}

/** Takes half a millisecond to decode and compare. A multiple of four: then base64 has no state between parts. */
export const PART_CHARACTERS = 256 * 1024;

/** Returns null if the text is not padded base64. */
export async function decodeContent(
  { text, encoding }: Content,
  pieces: PieceTurns,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text, encoding));
  let filled = 0;
  for (let at = 0; at < text.length; ) {
    const turn = pieces.next();
    if (turn) await turn;
    const end = endOfPart(text, at);
    const part = text.slice(at, end);
    const written = bytes.write(part, filled, encoding);
    if (encoding === "base64") {
      const isWhole = bytes.toString("base64", filled, filled + written) === part;
      if (!isWhole || (end < text.length && part.endsWith("="))) return null;
    }
    filled += written;
    at = end;
  }
  return bytes.subarray(0, filled);
}

/** End of the part that starts at `at`; never between the halves of a surrogate pair. */
function endOfPart(text: string, at: number): number {
  const end = Math.min(at + PART_CHARACTERS, text.length);
  const isHigh = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
  return isHigh ? end - 1 : end;
}

/** Splits a stream of bytes into pieces of given sizes, holding one back to mark the last piece. */

export interface Piece {
  bytes: Buffer;
  isLast: boolean;
}

/** `sizeOf` returns the bytes of each piece, counted from 0; the last piece has the remainder, which is empty only for an empty stream. */
export async function* piecesOf(
  source: AsyncIterable<Uint8Array>,
  sizeOf: (piece: number) => number,
): AsyncGenerator<Piece> {
  let waiting: Uint8Array[] = [];
  let held = 0;
  let number = 0;
  for await (const chunk of source) {
    if (chunk.length === 0) continue;
    waiting.push(chunk);
    held += chunk.length;
    // A remainder of exactly one piece may be the last one.
    while (held > sizeOf(number)) {
      const all = joined(waiting);
      const size = sizeOf(number++);
      yield { bytes: all.subarray(0, size), isLast: false };
      waiting = [all.subarray(size)];
      held = all.length - size;
    }
  }
  yield { bytes: joined(waiting), isLast: true };
}

/** One alone is not copied. */
function joined(chunks: Uint8Array[]): Buffer {
  const [only, another] = chunks;
  if (!only || another) return Buffer.concat(chunks);
  return Buffer.from(only.buffer, only.byteOffset, only.byteLength);
}

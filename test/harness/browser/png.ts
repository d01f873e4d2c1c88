/** A reader of pixels in the PNGs that the service makes: one data chunk with rows stored as differences to the rows above. */
import { inflateSync } from "node:zlib";

/** Red, green and blue of a pixel. */
export function colourAt(png: Uint8Array, x: number, y: number): number[] {
  const bytes = Buffer.from(png);
  const width = bytes.readUInt32BE(16);
  const rows = inflateSync(bytes.subarray(41, 41 + bytes.readUInt32BE(33)));
  const sum = [0, 0, 0];
  for (let row = 0; row <= y; row++) {
    for (const of of [0, 1, 2]) sum[of] = ((sum[of] ?? 0) + (rows[row * (width * 3 + 1) + 1 + x * 3 + of] ?? 0)) & 255;
  }
  return sum;
}

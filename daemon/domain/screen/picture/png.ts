/** PNG encoder (RFC 2083): eight bits each of red, green and blue, no transparency. Compression runs on another thread. */

import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";
import type { PieceTurns } from "../../../core/loop/index.ts";
import type { Pixels } from "./scale.ts";

const compress = promisify<Uint8Array, { level: number }, Buffer>(deflate);
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const TRUE_COLOUR = 2;
/** Encodes each byte as its difference from the byte above: most rows of a screen resemble the previous one. */
const FILTER_UP = 2;
/** Screens compress well at each level; higher ones take several times as long. */
const LEVEL = 4;

export async function encodePng({ width, height, rgb }: Pixels, pieces: PieceTurns): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(8, 8);
  header.writeUInt8(TRUE_COLOUR, 9);
  const data = await compress(await filtered(width, height, rgb, pieces), { level: LEVEL });
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

async function filtered(width: number, height: number, rgb: Uint8Array, pieces: PieceTurns): Promise<Uint8Array> {
  const rowBytes = width * 3;
  const rows = new Uint8Array((rowBytes + 1) * height);
  for (let row = 0; row < height; row++) {
    filterRow(rows.subarray(row * (rowBytes + 1), (row + 1) * (rowBytes + 1)), rgb, row * rowBytes, rowBytes);
    const turn = pieces.next();
    if (turn) await turn;
  }
  return rows;
}

function filterRow(filtered: Uint8Array, rgb: Uint8Array, from: number, length: number): void {
  filtered[0] = FILTER_UP;
  if (from === 0) filtered.set(rgb.subarray(0, length), 1);
  for (let at = from === 0 ? length : 0; at < length; at++) {
    filtered[at + 1] = (rgb[from + at] as number) - (rgb[from + at - length] as number);
  }
}

function chunk(type: string, data: Uint8Array): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const made = Buffer.alloc(named.byteLength + 8);
  made.writeUInt32BE(data.byteLength, 0);
  made.set(named, 4);
  made.writeUInt32BE(crc32(named), 4 + named.byteLength);
  return made;
}

/**
 * ZRLE decoder (RFC 6143, section 7.7.6): tiles of 64 by 64 pixels, each of one colour, with a palette, run-length encoded or raw,
 * compressed by one zlib stream that all rectangles of a connection share. Pixels are three bytes: red, green, blue.
 */
import { createInflate, type Inflate } from "node:zlib";
import type { Canvas, Rectangle } from "./canvas.ts";

const TILE = 64;
const PIXEL_BYTES = 3;

export class Zrle {
  readonly #inflate: Inflate = createInflate();
  #out: Buffer[] = [];
  #failure: Error | null = null;
  /** Of the rectangle under way. */
  #taken: PromiseWithResolvers<void> | null = null;

  constructor() {
    this.#inflate.on("data", (bytes: Buffer) => this.#out.push(bytes));
    this.#inflate.on("error", (error) => {
      this.#failure = error;
      this.#taken?.resolve();
    });
  }

  /** Draws a rectangle. Throws if it is invalid. */
  async draw(packed: Uint8Array, canvas: Canvas, rectangle: Rectangle): Promise<void> {
    const taken = Promise.withResolvers<void>();
    this.#taken = taken;
    this.#inflate.write(packed, () => taken.resolve());
    await taken.promise;
    if (this.#failure) throw this.#failure;
    const bytes = Buffer.concat(this.#out);
    this.#out = [];
    const reader = new TileReader(bytes);
    const { x, y, width, height } = rectangle;
    for (let top = 0; top < height; top += TILE) {
      for (let left = 0; left < width; left += TILE) {
        const size = { width: Math.min(TILE, width - left), height: Math.min(TILE, height - top) };
        canvas.put({ x: x + left, y: y + top, ...size }, reader.tile(size.width * size.height, size.width));
      }
    }
  }
}

class TileReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** `count` pixels, in rows of `width`. Throws RangeError if the bytes end early. */
  tile(count: number, width: number): Uint32Array {
    const kind = this.#byte();
    const pixels = new Uint32Array(count);
    if (kind === 0) for (let at = 0; at < count; at++) pixels[at] = this.#pixel();
    else if (kind === 1) pixels.fill(this.#pixel());
    else if (kind <= 16) this.#packed(pixels, this.#palette(kind), width);
    else if (kind === 128) this.#runs(pixels, () => this.#pixel());
    else if (kind >= 130) this.#paletteRuns(pixels, this.#palette(kind - 128));
    else throw new RangeError(`invalid tile kind ${kind}`);
    return pixels;
  }

  #packed(pixels: Uint32Array, palette: Uint32Array, width: number): void {
    const bits = palette.length <= 2 ? 1 : palette.length <= 4 ? 2 : 4;
    for (let row = 0; row < pixels.length; row += width) {
      for (let column = 0, left = 0, byte = 0; column < width; column++, left -= bits) {
        if (left === 0) [byte, left] = [this.#byte(), 8];
        pixels[row + column] = palette[(byte >> (left - bits)) & ((1 << bits) - 1)] ?? 0;
      }
    }
  }

  #runs(pixels: Uint32Array, colour: () => number): void {
    for (let at = 0; at < pixels.length; ) {
      const value = colour();
      const end = at + this.#length();
      pixels.fill(value, at, end);
      at = end;
    }
  }

  #paletteRuns(pixels: Uint32Array, palette: Uint32Array): void {
    for (let at = 0; at < pixels.length; ) {
      const index = this.#byte();
      const end = at + (index < 128 ? 1 : this.#length());
      pixels.fill(palette[index & 127] ?? 0, at, end);
      at = end;
    }
  }

  /** 1 plus the sum of the bytes up to and including the first below 255. */
  #length(): number {
    let length = 1;
    for (;;) {
      const byte = this.#byte();
      length += byte;
      if (byte < 255) return length;
    }
  }

  #palette(size: number): Uint32Array {
    return Uint32Array.from({ length: size }, () => this.#pixel());
  }

  #pixel(): number {
    const value = this.#bytes.readUIntLE(this.#at, PIXEL_BYTES);
    this.#at += PIXEL_BYTES;
    return value;
  }

  #byte(): number {
    return this.#bytes.readUInt8(this.#at++);
  }
}

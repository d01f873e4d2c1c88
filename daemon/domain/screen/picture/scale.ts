/** Scaling of a frame, or a part of it, to the pixels of a picture: reduced by averaging the source pixels of each target pixel. */
import type { PieceTurns } from "../../../core/loop/index.ts";
import { type Frame, PIXEL_BYTES, type Rectangle } from "../rfb/frame.ts";

export interface Pixels {
  width: number;
  height: number;
  /** Three bytes a pixel. */
  rgb: Uint8Array;
}

/** The size of `whole` scaled down to at most `width`, with its proportions; it is never enlarged. */
export function scaledSize(whole: { width: number; height: number }, width: number): { width: number; height: number } {
  if (width >= whole.width) return { width: whole.width, height: whole.height };
  return { width, height: Math.max(1, Math.round((whole.height * width) / whole.width)) };
}

/** `part` is inside the frame, and no smaller than the size. Yields to other work between pieces. */
export async function scaled(
  frame: Frame,
  part: Rectangle,
  { width, height }: { width: number; height: number },
  pieces: PieceTurns,
): Promise<Pixels> {
  const rgb = new Uint8Array(width * height * 3);
  if (width === part.width && height === part.height) {
    for (let row = 0; row < height; row++) {
      copyRow(rgb, frame, part, row);
      const turn = pieces.next();
      if (turn) await turn;
    }
    return { width, height, rgb };
  }
  const columns = spans(part.width, width);
  // One row of sums; each source row is weighted by its overlap with the target row.
  const sums = new Float32Array(part.width * PIXEL_BYTES);
  for (const [to, span] of spans(part.height, height).entries()) {
    sums.fill(0);
    for (let row = span.from; row < span.end; row++) addRow(sums, frame, part, row, weightOf(span, row));
    for (const [column, each] of columns.entries()) average(rgb, (to * width + column) * 3, sums, each);
    const turn = pieces.next();
    if (turn) await turn;
  }
  return { width, height, rgb };
}

function copyRow(rgb: Uint8Array, frame: Frame, part: Rectangle, row: number): void {
  const { pixels } = frame;
  let from = ((part.y + row) * frame.width + part.x) * PIXEL_BYTES;
  let to = row * part.width * 3;
  for (const end = to + part.width * 3; to < end; to += 3, from += PIXEL_BYTES) {
    rgb[to] = pixels[from] as number;
    rgb[to + 1] = pixels[from + 1] as number;
    rgb[to + 2] = pixels[from + 2] as number;
  }
}

/** Source of one pixel: from `low` to `high`, within the pixels `from` (inclusive) to `end` (exclusive). */
interface Span {
  low: number;
  high: number;
  from: number;
  end: number;
}

function spans(source: number, made: number): Span[] {
  return Array.from({ length: made }, (_, at) => {
    const [low, high] = [(at * source) / made, ((at + 1) * source) / made];
    return { low, high, from: Math.floor(low), end: Math.min(source, Math.ceil(high)) };
  });
}

/** Overlap of the pixel with the span, as a fraction of the span. */
function weightOf({ low, high }: Span, at: number): number {
  return (Math.min(at + 1, high) - Math.max(at, low)) / (high - low);
}

function addRow(sums: Float32Array, frame: Frame, part: Rectangle, row: number, weight: number): void {
  const { pixels } = frame;
  const from = ((part.y + row) * frame.width + part.x) * PIXEL_BYTES;
  for (let at = 0; at < sums.length; at++) sums[at] = (sums[at] as number) + (pixels[from + at] as number) * weight;
}

function average(rgb: Uint8Array, to: number, sums: Float32Array, span: Span): void {
  let [red, green, blue] = [0.5, 0.5, 0.5];
  for (let column = span.from; column < span.end; column++) {
    const weight = weightOf(span, column);
    const at = column * PIXEL_BYTES;
    red += (sums[at] as number) * weight;
    green += (sums[at + 1] as number) * weight;
    blue += (sums[at + 2] as number) * weight;
  }
  rgb[to] = red;
  rgb[to + 1] = green;
  rgb[to + 2] = blue;
}

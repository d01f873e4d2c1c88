/** Frame of a screen: four bytes a pixel, red, green, blue and one unused. */
import { RfbError, requireSize } from "./limits.ts";

export const PIXEL_BYTES = 4;

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function bytesOf(width: number, height: number): number {
  return width * height * PIXEL_BYTES;
}

/** A black frame. Throws RfbError for a size that no screen may have. */
export function blankFrame(width: number, height: number): Frame {
  requireSize(width, height);
  return { width, height, pixels: new Uint8Array(bytesOf(width, height)) };
}

export function wholeOf({ width, height }: Frame): Rectangle {
  return { x: 0, y: 0, width, height };
}

/** Throws RfbError if the rectangle is not inside the frame. */
export function requireInside({ width, height }: Frame, each: Rectangle): void {
  if (each.x + each.width > width || each.y + each.height > height) {
    throw new RfbError(
      `a rectangle of ${each.width}x${each.height} at ${each.x},${each.y} is not inside ${width}x${height}`,
    );
  }
}

/** The bytes of one row of a rectangle inside the frame; `row` counts from the rectangle's top. */
export function rowOf(frame: Frame, { x, y, width }: Rectangle, row: number): Uint8Array {
  const from = ((y + row) * frame.width + x) * PIXEL_BYTES;
  return frame.pixels.subarray(from, from + width * PIXEL_BYTES);
}

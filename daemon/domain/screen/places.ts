/** Conversion of coordinates: between the size requested by a caller and the screen itself. */
import { scaledSize } from "./picture/scale.ts";
import type { Rectangle } from "./rfb/frame.ts";

export type Point = readonly [x: number, y: number];

export class Scale {
  readonly #screen: { width: number; height: number };
  /** Size of the picture that the caller receives. */
  readonly width: number;
  readonly height: number;

  constructor(screen: { width: number; height: number }, requestedWidth: number | undefined) {
    this.#screen = { width: screen.width, height: screen.height };
    ({ width: this.width, height: this.height } = scaledSize(screen, requestedWidth ?? screen.width));
  }

  /** The screen pixel at the centre of the area that the picture's pixel shows. */
  real(point: readonly number[]): { x: number; y: number } {
    const at = (shown: number, of: number, real: number) => Math.min(real - 1, Math.floor(((shown + 0.5) * real) / of));
    return {
      x: at(point[0] ?? 0, this.width, this.#screen.width),
      y: at(point[1] ?? 0, this.height, this.#screen.height),
    };
  }

  /** The picture's pixel that covers most of a screen pixel. */
  shown([x, y]: Point): [number, number] {
    const at = (real: number, of: number, shown: number) =>
      Math.min(shown - 1, Math.floor(((real + 0.5) * shown) / of));
    return [at(x, this.#screen.width, this.width), at(y, this.#screen.height, this.height)];
  }

  /** The part of the screen between two corners of the picture; at least one pixel. */
  region(corners: readonly number[]): Rectangle {
    const [left = 0, top = 0, right = 0, bottom = 0] = corners;
    const x = Math.floor((left * this.#screen.width) / this.width);
    const y = Math.floor((top * this.#screen.height) / this.height);
    const end = (at: number, of: number, real: number, from: number) =>
      Math.max(from + 1, Math.min(real, Math.ceil((at * real) / of)));
    return {
      x,
      y,
      width: end(right, this.width, this.#screen.width, x) - x,
      height: end(bottom, this.height, this.#screen.height, y) - y,
    };
  }
}

/** The picture that is drawn while a recording is played: 32 bits per pixel, red first, of constant size. */
export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export class Canvas {
  readonly width: number;
  readonly height: number;
  readonly #pixels: Uint32Array;

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
    this.#pixels = new Uint32Array(width * height);
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#pixels.buffer);
  }

  clear(): void {
    this.#pixels.fill(0);
  }

  /** Pixels outside the canvas are clipped. */
  put({ x, y, width, height }: Rectangle, pixels: Uint32Array): void {
    const shown = Math.min(width, this.width - x);
    if (shown <= 0) return;
    for (let row = 0; row < height && y + row < this.height; row++) {
      this.#pixels.set(pixels.subarray(row * width, row * width + shown), (y + row) * this.width + x);
    }
  }
}

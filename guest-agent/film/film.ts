/**
 * `film`: plays a screen recording from standard input, and writes raw pictures to standard output, `perSecond` per second. It is this
 * program under another name, run in a machine that makes films, in which ffmpeg reads the pictures.
 */
import { writeSync } from "node:fs";
import { PIECE_HEADER_BYTES, RECORDED } from "../../shared/agent-protocol/recording.ts";
import { Canvas } from "./canvas.ts";
import { Zrle } from "./zrle.ts";

const RECTANGLE_BYTES = 12;

/** Arguments: width and height of the film, its length in milliseconds, frames per second. */
export async function runFilm(args: string[]): Promise<void> {
  const [width = 0, height = 0, lengthMs = 0, perSecond = 1] = args.map(Number);
  const player = new Player(new Canvas(width, height));
  await filmOf(Bun.stdin.stream(), player, { lengthMs, perSecond }, (picture) => {
    for (let at = 0; at < picture.byteLength; ) at += writeSync(1, picture, at);
  });
}

/** Calls `show` with each frame, the first as soon as it exists. */
export async function filmOf(
  recording: AsyncIterable<Uint8Array>,
  player: Player,
  { lengthMs, perSecond }: { lengthMs: number; perSecond: number },
  show: (picture: Uint8Array) => void,
): Promise<void> {
  const between = 1000 / perSecond;
  let due: number | null = null;
  const showUntil = (ms: number) => {
    for (; due !== null && due < ms; due += between) show(player.picture);
  };
  for await (const { ms, bytes } of piecesOf(recording)) {
    showUntil(ms);
    if (await player.play(bytes)) due ??= ms;
  }
  showUntil(Math.max(lengthMs, (due ?? 0) + 1));
}

export class Player {
  readonly #canvas: Canvas;
  readonly #zrle = new Zrle();
  #isBegun = false;

  constructor(canvas: Canvas) {
    this.#canvas = canvas;
  }

  get picture(): Uint8Array {
    return this.#canvas.bytes;
  }

  /** Returns whether the piece was an update. Throws RangeError if it is invalid. */
  async play(piece: Buffer): Promise<boolean> {
    // The server's greeting is skipped: the film has its own size.
    if (!this.#isBegun) {
      this.#isBegun = true;
      return false;
    }
    let at = 4;
    for (let left = piece.readUInt16BE(2); left > 0; left--) at = await this.#rectangle(piece, at);
    return true;
  }

  /** Returns the offset of the next rectangle. */
  async #rectangle(piece: Buffer, from: number): Promise<number> {
    const [x, y, width, height] = [0, 2, 4, 6].map((at) => piece.readUInt16BE(from + at)) as [
      number,
      number,
      number,
      number,
    ];
    const rectangle = { x, y, width, height };
    const at = from + RECTANGLE_BYTES;
    const encoding = piece.readInt32BE(from + 8);
    if (encoding === RECORDED.raw) {
      const end = at + width * height * 4;
      this.#canvas.put(rectangle, new Uint32Array(Uint8Array.from(piece.subarray(at, end)).buffer));
      return end;
    }
    if (encoding === RECORDED.zrle) {
      const end = at + 4 + piece.readUInt32BE(at);
      await this.#zrle.draw(piece.subarray(at + 4, end), this.#canvas, rectangle);
      return end;
    }
    if (encoding !== RECORDED.desktopSize) throw new RangeError(`recordings have no encoding ${encoding}`);
    this.#canvas.clear();
    return at;
  }
}

/** A piece that is truncated at the end is left out. */
async function* piecesOf(recording: AsyncIterable<Uint8Array>): AsyncGenerator<{ ms: number; bytes: Buffer }> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  let needed = PIECE_HEADER_BYTES;
  for await (const chunk of recording) {
    held.push(chunk);
    bytes += chunk.byteLength;
    while (bytes >= needed) {
      const all = Buffer.concat(held);
      const end = PIECE_HEADER_BYTES + all.readUInt32BE(4);
      if (bytes >= end) {
        yield { ms: all.readUInt32BE(0), bytes: all.subarray(PIECE_HEADER_BYTES, end) };
        held = [all.subarray(end)];
        bytes -= end;
        needed = PIECE_HEADER_BYTES;
      } else {
        held = [all];
        needed = end;
      }
    }
  }
}

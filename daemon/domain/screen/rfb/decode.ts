/**
 * Decoder of a screen server's messages after the handshake (RFC 6143, section 7.6), and the frame that they draw:
 *
 *     update ──▶ rectangles: pixels into the frame · a new size, and so a new frame · position of the pointer
 *     bell, colours ──▶ dropped        clipboard ──▶ dropped
 *
 * It reads and waits; it never writes.
 */
import type { Allowance } from "../../../host/guest-link/pace.ts";
import type { ByteReader } from "./byte-reader.ts";
import { blankFrame, bytesOf, type Frame, type Rectangle, requireInside, rowOf } from "./frame.ts";
import { MAX_RECTANGLES, RfbError, requireSize } from "./limits.ts";
import { Encoding } from "./messages.ts";
import { dropMessage, Message } from "./server-messages.ts";

/** Reserves memory for a frame; the returned function releases it. Throws if the limit is reached. */
export type Hold = (bytes: number) => () => void;

export interface Update {
  /** How many pixels it drew. */
  drawn: number;
  /** Whether it drew the awaited pixel. */
  hasAwaited: boolean;
  /** Whether the frame is a new one, without drawn pixels. */
  isNewFrame: boolean;
}

export class Decoder {
  readonly #reader: ByteReader;
  readonly #sizes: Allowance;
  /** A pixel of the first row, by its x: updates that draw it are marked. */
  awaited = 0;
  readonly #hold: Hold;
  #letGo: () => void;
  /** Null after the end of the connection. */
  #frame: Frame | null;
  #pointer: { x: number; y: number } | null = null;

  constructor(
    reader: ByteReader,
    { width, height }: { width: number; height: number },
    { hold, sizes }: { hold: Hold; sizes: Allowance },
  ) {
    this.#reader = reader;
    this.#hold = hold;
    this.#sizes = sizes;
    this.#letGo = hold(bytesOf(width, height));
    this.#frame = blankFrame(width, height);
  }

  /** Throws RfbError after the end: memory that is no longer counted is not held either. */
  get frame(): Frame {
    if (!this.#frame) throw new RfbError("the connection ended");
    return this.#frame;
  }

  /** Pointer position from the server; null until it has sent one. */
  get pointer(): { x: number; y: number } | null {
    return this.#pointer;
  }

  /** Data that is still being read creates no new frame. */
  close(): void {
    this.#frame = null;
    this.#letGo();
  }

  /** Resolves after the next update. Throws RfbError if the stream has ended. */
  async next(): Promise<Update> {
    for (;;) {
      const type = await this.#reader.u8();
      if (type === Message.update) return await this.#update();
      await dropMessage(this.#reader, type);
    }
  }

  async #update(): Promise<Update> {
    await this.#reader.skip(1);
    const count = await this.#reader.u16();
    if (count > MAX_RECTANGLES) throw new RfbError(`an update has ${count} rectangles`);
    const update: Update = { drawn: 0, hasAwaited: false, isNewFrame: false };
    for (let left = count; left > 0; left--) await this.#rectangle(update);
    return update;
  }

  async #rectangle(update: Update): Promise<void> {
    const header = await this.#reader.bytes(12);
    const [x, y, width, height] = [0, 2, 4, 6].map((at) => header.readUInt16BE(at)) as [number, number, number, number];
    const rectangle: Rectangle = { x, y, width, height };
    const encoding = header.readInt32BE(8);
    if (encoding === Encoding.raw) return await this.#raw(rectangle, update);
    if (encoding === Encoding.pointerPosition) {
      this.#pointer = { x, y };
    } else if (encoding === Encoding.desktopSize) {
      this.#resize(rectangle, update);
    } else {
      throw new RfbError(`encoding ${encoding} was not requested`);
    }
  }

  async #raw(rectangle: Rectangle, update: Update): Promise<void> {
    requireInside(this.frame, rectangle);
    const { x, y, width, height } = rectangle;
    if (width === 0 || height === 0) return;
    for (let row = 0; row < height; row++) await this.#reader.fill(rowOf(this.frame, rectangle, row));
    update.drawn += width * height;
    if (y === 0 && x <= this.awaited && this.awaited < x + width) update.hasAwaited = true;
  }

  #resize({ width, height }: Rectangle, update: Update): void {
    requireSize(width, height);
    if (width === this.frame.width && height === this.frame.height) return;
    if (update.isNewFrame) throw new RfbError("an update has two new sizes");
    if (!this.#sizes.take()) throw new RfbError("the screen has a new size too often");
    this.#letGo();
    this.#letGo = () => {};
    const letGo = this.#hold(bytesOf(width, height));
    // The eviction for this memory may have closed this very connection.
    if (!this.#frame) {
      letGo();
      throw new RfbError("the connection ended");
    }
    this.#letGo = letGo;
    this.#frame = blankFrame(width, height);
    Object.assign(update, { drawn: 0, hasAwaited: false, isNewFrame: true });
  }
}

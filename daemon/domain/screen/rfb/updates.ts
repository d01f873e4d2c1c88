/**
 * Owns reading what a screen's server says as it is, update by update, for whoever keeps it: lengths are read, pixels are not looked at.
 * Everything else that it may say is dropped.
 */
import { MOST_PIECE_BYTES, RECORDED } from "../../../../shared/agent-protocol/recording.ts";
import type { Allowance } from "../../../host/guest-link/pace.ts";
import type { ByteReader } from "./byte-reader.ts";
import { MOST_RECTANGLES, RfbError, requireSize } from "./limits.ts";
import { dropMessage, Message } from "./server-messages.ts";

const PIXEL_BYTES = 4;

export interface RawUpdate {
  /** The whole message, in its parts. */
  parts: Buffer[];
  length: number;
  /** Whether there is anything in it. */
  isEmpty: boolean;
  /** The size of the screen from then on, where it is another. */
  size: { width: number; height: number } | null;
}

export class Updates {
  readonly #reader: ByteReader;
  readonly #sizes: Allowance;

  constructor(reader: ByteReader, sizes: Allowance) {
    this.#reader = reader;
    this.#sizes = sizes;
  }

  /** Resolves with the next update. Throws RfbError when there is none any more. */
  async next(): Promise<RawUpdate> {
    for (;;) {
      const type = await this.#reader.u8();
      if (type === Message.update) return await this.#update();
      await dropMessage(this.#reader, type);
    }
  }

  async #update(): Promise<RawUpdate> {
    const rest = await this.#reader.bytes(3);
    const count = rest.readUInt16BE(1);
    if (count > MOST_RECTANGLES) throw new RfbError(`an update has ${count} rectangles`);
    const update: RawUpdate = { parts: [Buffer.of(Message.update), rest], length: 4, isEmpty: count === 0, size: null };
    for (let left = count; left > 0; left--) await this.#rectangle(update);
    return update;
  }

  async #rectangle(update: RawUpdate): Promise<void> {
    const header = await this.#take(update, 12);
    const [width, height] = [header.readUInt16BE(4), header.readUInt16BE(6)];
    const encoding = header.readInt32BE(8);
    requireSize(Math.max(width, 1), Math.max(height, 1));
    if (encoding === RECORDED.raw) await this.#take(update, width * height * PIXEL_BYTES);
    else if (encoding === RECORDED.zrle) await this.#take(update, (await this.#take(update, 4)).readUInt32BE());
    else if (encoding === RECORDED.desktopSize) this.#resize(update, width, height);
    else throw new RfbError(`encoding ${encoding} was not asked for`);
  }

  #resize(update: RawUpdate, width: number, height: number): void {
    requireSize(width, height);
    if (!this.#sizes.take()) throw new RfbError("the screen has a new size too often");
    update.size = { width, height };
  }

  async #take(update: RawUpdate, count: number): Promise<Buffer> {
    update.length += count;
    if (update.length > MOST_PIECE_BYTES) throw new RfbError("an update is larger than the screen");
    const taken = await this.#reader.bytes(count);
    update.parts.push(taken);
    return taken;
  }
}

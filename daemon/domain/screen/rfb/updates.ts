/**
 * Reads a screen server's updates unchanged, one by one, for storage: lengths are parsed, pixels are not.
 * All other messages are dropped.
 */
import { MAX_PIECE_BYTES, RECORDED } from "../../../../shared/agent-protocol/recording.ts";
import { within } from "../../../core/concurrency/published.ts";
import type { ByteReader } from "./byte-reader.ts";
import { MAX_RECTANGLES, RfbError, requireSize } from "./limits.ts";
import { dropMessage, Message } from "./server-messages.ts";

const PIXEL_BYTES = 4;
/** Limit of the time that the host holds a partial update. */
const WHOLE_MS = 30_000;

export interface RawUpdate {
  /** The whole message, in parts. */
  parts: Buffer[];
  length: number;
  /** Whether the message has no rectangles. */
  isEmpty: boolean;
  /** The size of the screen from then on, if changed; else null. */
  size: { width: number; height: number } | null;
}

export class Updates {
  readonly #reader: ByteReader;

  constructor(reader: ByteReader) {
    this.#reader = reader;
  }

  /** Resolves with the next update. Once started, an update must arrive soon. Throws RfbError after the end, DeadlineError. */
  async next(): Promise<RawUpdate> {
    for (;;) {
      const type = await this.#reader.u8();
      if (type === Message.update) return await within(this.#update(), WHOLE_MS, "an update of the screen");
      await within(dropMessage(this.#reader, type), WHOLE_MS, "a message of the screen");
    }
  }

  async #update(): Promise<RawUpdate> {
    const rest = await this.#reader.bytes(3);
    const count = rest.readUInt16BE(1);
    if (count > MAX_RECTANGLES) throw new RfbError(`an update has ${count} rectangles`);
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
    else if (encoding === RECORDED.desktopSize) {
      requireSize(width, height);
      update.size = { width, height };
    } else throw new RfbError(`encoding ${encoding} was not requested`);
  }

  async #take(update: RawUpdate, count: number): Promise<Buffer> {
    update.length += count;
    if (update.length > MAX_PIECE_BYTES) throw new RfbError(`an update of ${update.length} bytes is too large`);
    const taken = await this.#reader.bytes(count);
    update.parts.push(taken);
    return taken;
  }
}

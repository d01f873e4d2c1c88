/**
 * The frame, the unit of the stream between host and guest agent, and its limits.
 *
 *     length:u32be  type:u8  stream:u32be  payload[length - 5]
 *
 * The meaning of payloads is in messages.ts, the sharing of the connection by streams in link.ts.
 */

export const FrameType = {
  /** agent → host, once: JSON Hello. */
  hello: 0,
  /** host → agent, once: JSON Welcome. */
  welcome: 1,
  /** agent → host, once: JSON Ready, or the reason of a failed set-up. */
  ready: 2,
  /** Opens a stream: JSON request with its `method`. */
  open: 3,
  /** Bytes of one channel: channel:u8 bytes. */
  data: 4,
  /** Flow-control credit: the peer may send more on a channel: channel:u8 bytes:u32be. */
  credit: 5,
  /** No more data on a channel: channel:u8. */
  eof: 6,
  /** JSON event within a stream, in either direction. */
  event: 7,
  /** Ends a stream: JSON `{result}` or `{error}`. */
  close: 8,
  ping: 9,
  pong: 10,
} as const;

export type FrameType = (typeof FrameType)[keyof typeof FrameType];

export interface Frame {
  type: number;
  stream: number;
  payload: Uint8Array;
  /** Whether the frame owns its payload. Otherwise the payload is in memory of the chunk or of the decoder, which is reused. */
  own: boolean;
}

const HEADER_BYTES = 9;

/** Maximum data bytes in one frame, so that no stream occupies the connection for long. */
export const MAX_DATA_BYTES = 64 * 1024;
/** Maximum payload bytes that the host accepts from a guest: one full data frame with its channel byte. */
export const MAX_PAYLOAD_FROM_GUEST = MAX_DATA_BYTES + 1;
/** Maximum payload bytes that an agent accepts from the host: a request with long arguments and environment. */
export const MAX_PAYLOAD_FROM_HOST = 4 * 1024 * 1024;

export class FrameError extends Error {
  override name = "FrameError";
}

export function encodeFrame(type: FrameType, stream: number, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + payload.byteLength);
  const view = new DataView(frame.buffer);
  view.setUint32(0, payload.byteLength + 5);
  view.setUint8(4, type);
  view.setUint32(5, stream);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Bytes of a data frame before its data. */
export const DATA_HEADER_BYTES = HEADER_BYTES + 1;

/** Encodes a data frame into the buffer `room`, with a single copy of its bytes. */
export function encodeData(room: Uint8Array, stream: number, channel: number, bytes: Uint8Array): Uint8Array {
  const frame = room.subarray(0, DATA_HEADER_BYTES + bytes.byteLength);
  setDataHeader(frame, stream, channel, bytes.byteLength);
  frame.set(bytes, DATA_HEADER_BYTES);
  return frame;
}

/** Writes the header of a data frame of `length` bytes to the beginning of `room`. */
export function setDataHeader(room: Uint8Array, stream: number, channel: number, length: number): void {
  const view = new DataView(room.buffer, room.byteOffset);
  view.setUint32(0, length + 6);
  view.setUint8(4, FrameType.data);
  view.setUint32(5, stream);
  view.setUint8(HEADER_BYTES, channel);
}

/** Maximum memory that a decoder keeps between unfinished frames. */
const MAX_ROOM_BYTES = MAX_DATA_BYTES + 1 + HEADER_BYTES;

/**
 * Splits a byte stream into frames. Buffers at most one unfinished frame, and none longer than `maxPayload`. With `keepsRoom` unfinished
 * frames share their memory, which an emulated guest needs: each page of fresh memory costs it more than its bytes.
 */
export class FrameDecoder {
  readonly #maxPayload: number;
  readonly #keepsRoom: boolean;
  #pending: Uint8Array = new Uint8Array(0);
  #have = 0;
  #taken = 0;

  constructor(maxPayload: number, keepsRoom = false) {
    this.#maxPayload = maxPayload;
    this.#keepsRoom = keepsRoom;
  }

  /** Number of bytes of the last chunk up to the end of the last frame. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Processes the next bytes of the stream; a caller that stops early passes the rest, after `taken` bytes, again. Throws FrameError on an
   * invalid frame length.
   */
  *push(chunk: Uint8Array): Generator<Frame> {
    const view = viewOf(chunk);
    let offset = 0;
    while (offset < chunk.byteLength) {
      const left = chunk.byteLength - offset;
      if (this.#have === 0 && left >= HEADER_BYTES) {
        const total = this.#totalLength(view, offset);
        if (left >= total) {
          this.#taken = offset + total;
          yield frameAt(view, offset, total, false);
          offset += total;
          continue;
        }
      }
      offset += this.#collect(chunk.subarray(offset));
      const pending = viewOf(this.#pending);
      if (this.#have >= HEADER_BYTES && this.#have === this.#totalLength(pending, 0)) {
        const total = this.#have;
        const isKept = this.#keepsRoom && pending.byteLength <= MAX_ROOM_BYTES;
        if (!isKept) this.#pending = new Uint8Array(0);
        this.#have = 0;
        this.#taken = offset;
        yield frameAt(pending, 0, total, !isKept);
      }
    }
  }

  /** Adds to the unfinished frame, first its header, then the rest; returns the number of bytes used. */
  #collect(bytes: Uint8Array): number {
    const want = this.#have < HEADER_BYTES ? HEADER_BYTES : this.#totalLength(viewOf(this.#pending), 0);
    if (this.#pending.byteLength < want) {
      const grown = Buffer.allocUnsafeSlow(want);
      grown.set(this.#pending.subarray(0, this.#have));
      this.#pending = grown;
    }
    const taken = Math.min(want - this.#have, bytes.byteLength);
    this.#pending.set(bytes.subarray(0, taken), this.#have);
    this.#have += taken;
    if (this.#have === HEADER_BYTES) this.#totalLength(viewOf(this.#pending), 0);
    return taken;
  }

  #totalLength(bytes: DataView, at: number): number {
    const length = bytes.getUint32(at);
    if (length < 5) throw new FrameError(`frame length ${length} is shorter than its header`);
    if (length - 5 > this.#maxPayload) {
      throw new FrameError(`frame payload of ${length - 5} bytes is over the limit of ${this.#maxPayload}`);
    }
    return length + 4;
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

function frameAt(bytes: DataView, at: number, total: number, own: boolean): Frame {
  const payload = new Uint8Array(bytes.buffer, bytes.byteOffset + at + HEADER_BYTES, total - HEADER_BYTES);
  return { type: bytes.getUint8(at + 4), stream: bytes.getUint32(at + 5), payload, own };
}

/** WebSocket frames (RFC 6455) between us, as the client, and a guest's server: written masked, read with limits. */
import { randomBytes } from "node:crypto";
import type { ByteReader } from "../../../wire/byte-reader.ts";
import { BadMessage } from "../../../wire/http1/bad-message.ts";

export const Opcode = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
export type Opcode = (typeof Opcode)[keyof typeof Opcode];

/** A protocol violation of a server that ends the session, with the close code for it. */
export class SocketBreach extends Error {
  override name = "SocketBreach";
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export interface Message {
  opcode: typeof Opcode.text | typeof Opcode.binary | typeof Opcode.close | typeof Opcode.ping | typeof Opcode.pong;
  payload: Uint8Array;
}

/** Counts bytes held in memory; a negative number releases. Returns false if the limit would be exceeded: then none is counted. */
export type Hold = (bytes: number) => boolean;

const PROTOCOL_ERROR = 1002;
const TOO_LARGE = 1009;
const TRY_LATER = 1013;
const EMPTY = new Uint8Array(0);
const FIN = 0x80;
const MASKED = 0x80;
const RESERVED_BITS = 0x70;
const MASK_BYTES = 4;
const MAX_CONTROL_BYTES = 125;

/** One complete frame, masked with random bytes as required of clients. */
export function encodeFrame(opcode: Opcode, payload: Uint8Array): Uint8Array {
  const size = payload.byteLength;
  const extra = size < 126 ? 0 : size < 65_536 ? 2 : 8;
  const body = 2 + extra + MASK_BYTES;
  // The body starts at a word boundary, so that it is masked a word at a time.
  const before = -body & 3;
  const whole = new Uint8Array((before + body + size + 3) & ~3);
  const frame = Buffer.from(whole.buffer, before, body + size);
  frame[0] = FIN | opcode;
  frame[1] = MASKED | (extra === 0 ? size : extra === 2 ? 126 : 127);
  if (extra === 2) frame.writeUInt16BE(size, 2);
  if (extra === 8) frame.writeBigUInt64BE(BigInt(size), 2);
  const mask = randomBytes(MASK_BYTES);
  frame.set(mask, 2 + extra);
  frame.set(payload, body);
  const words = new Uint32Array(whole.buffer, before + body);
  const [maskWord = 0] = new Uint32Array(Uint8Array.from(mask).buffer);
  for (let index = 0; index < words.length; index++) words[index] = (words[index] ?? 0) ^ maskWord;
  return frame;
}

/**
 * Messages, reassembled, and control frames in between. `hold` counts the bytes held until a message is complete and consumed; if it
 * returns false, they must not be held. Throws SocketBreach, BadMessage.
 */
export async function* readMessages(
  reader: ByteReader,
  mostBytes: number,
  hold: Hold = () => true,
): AsyncGenerator<Message> {
  const message = new Gathering(hold);
  let kind: typeof Opcode.text | typeof Opcode.binary | null = null;
  try {
    for (;;) {
      const [first = 0, second = 0] = await reader.exactly(2);
      const opcode = first & 0x0f;
      const isLast = (first & FIN) !== 0;
      if ((first & RESERVED_BITS) !== 0) throw new SocketBreach(PROTOCOL_ERROR, "a frame with reserved bits");
      if ((second & MASKED) !== 0) throw new SocketBreach(PROTOCOL_ERROR, "a server's frame is not masked");
      const length = await lengthOf(reader, second & 0x7f);
      if (opcode === Opcode.close || opcode === Opcode.ping || opcode === Opcode.pong) {
        if (length > MAX_CONTROL_BYTES || !isLast) {
          throw new SocketBreach(PROTOCOL_ERROR, "an invalid control frame");
        }
        yield { opcode, payload: await reader.exactly(length) };
        continue;
      }
      if (opcode === Opcode.text || opcode === Opcode.binary) {
        if (kind !== null) throw new SocketBreach(PROTOCOL_ERROR, "a message within a message");
        kind = opcode;
      } else if (opcode !== Opcode.more || kind === null) {
        throw new SocketBreach(PROTOCOL_ERROR, "a frame of an unknown kind");
      }
      if (message.size + length > mostBytes) {
        throw new SocketBreach(TOO_LARGE, `a message of over ${mostBytes} bytes`);
      }
      for (let left = length; left > 0; ) {
        const bytes = await reader.some(left);
        if (!bytes) throw new BadMessage("the server ended in the middle of a message");
        message.add(bytes);
        left -= bytes.byteLength;
      }
      if (!isLast) continue;
      yield { opcode: kind, payload: message.bytes };
      message.clear();
      kind = null;
    }
  } finally {
    message.clear();
  }
}

/** The bytes of one message as they arrive. An announced length allocates nothing: only received bytes take memory. */
class Gathering {
  readonly #hold: Hold;
  #store: Uint8Array = EMPTY;
  #held = 0;
  size = 0;

  constructor(hold: Hold) {
    this.#hold = hold;
  }

  get bytes(): Uint8Array {
    return this.#store.subarray(0, this.size);
  }

  add(bytes: Uint8Array): void {
    if (this.size === 0) {
      // Most messages arrive in one piece, and are passed on without a copy.
      this.#store = bytes;
    } else {
      if (this.#held < this.size + bytes.byteLength) this.#grow(2 * (this.size + bytes.byteLength));
      this.#store.set(bytes, this.size);
    }
    this.size += bytes.byteLength;
  }

  clear(): void {
    this.#hold(-this.#held);
    this.#held = 0;
    this.#store = EMPTY;
    this.size = 0;
  }

  /** Throws SocketBreach. */
  #grow(room: number): void {
    if (!this.#hold(room - this.#held)) throw new SocketBreach(TRY_LATER, "too many unfinished messages");
    this.#held = room;
    const larger = new Uint8Array(room);
    larger.set(this.bytes);
    this.#store = larger;
  }
}

async function lengthOf(reader: ByteReader, short: number): Promise<number> {
  if (short < 126) return short;
  const bytes = Buffer.from(await reader.exactly(short === 126 ? 2 : 8));
  return short === 126 ? bytes.readUInt16BE(0) : Number(bytes.readBigUInt64BE(0));
}

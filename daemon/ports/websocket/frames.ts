/** Owns the frames of a WebSocket (RFC 6455) between us, as its client, and a guest's server: written masked, read with bounds. */
import { randomBytes } from "node:crypto";
import type { ByteReader } from "../http/byte-reader.ts";

export const Opcode = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
export type Opcode = (typeof Opcode)[keyof typeof Opcode];

/** What a server did that ends the conversation, with the code that says so. */
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

const FIN = 0x80;
const MASKED = 0x80;
const RESERVED_BITS = 0x70;
const MAX_CONTROL_BYTES = 125;

/** One whole frame, masked with bytes of chance as a client's must be. */
export function encodeFrame(opcode: Opcode, payload: Uint8Array): Uint8Array {
  const size = payload.byteLength;
  const extra = size < 126 ? 0 : size < 65_536 ? 2 : 8;
  const frame = Buffer.allocUnsafe(2 + extra + 4 + size);
  frame[0] = FIN | opcode;
  frame[1] = MASKED | (extra === 0 ? size : extra === 2 ? 126 : 127);
  if (extra === 2) frame.writeUInt16BE(size, 2);
  if (extra === 8) frame.writeBigUInt64BE(BigInt(size), 2);
  const mask = randomBytes(4);
  mask.copy(frame, 2 + extra);
  const body = 6 + extra;
  for (let index = 0; index < size; index++) frame[body + index] = (payload[index] ?? 0) ^ (mask[index & 3] ?? 0);
  return frame;
}

/** Messages with their parts put together, and control frames in between. Throws SocketBreach, BadAnswer. */
export async function* readMessages(reader: ByteReader, mostBytes: number): AsyncGenerator<Message> {
  let parts: Uint8Array[] = [];
  let kind: typeof Opcode.text | typeof Opcode.binary | null = null;
  let size = 0;
  for (;;) {
    const [first = 0, second = 0] = await reader.exactly(2);
    const opcode = first & 0x0f;
    const isLast = (first & FIN) !== 0;
    if ((first & RESERVED_BITS) !== 0) throw new SocketBreach(1002, "a frame with reserved bits");
    if ((second & MASKED) !== 0) throw new SocketBreach(1002, "a server's frame is not masked");
    const length = await lengthOf(reader, second & 0x7f);
    if (opcode === Opcode.close || opcode === Opcode.ping || opcode === Opcode.pong) {
      if (length > MAX_CONTROL_BYTES || !isLast) throw new SocketBreach(1002, "a control frame that is none");
      yield { opcode, payload: await reader.exactly(length) };
      continue;
    }
    if (opcode === Opcode.text || opcode === Opcode.binary) {
      if (kind !== null) throw new SocketBreach(1002, "a message within a message");
      kind = opcode;
    } else if (opcode !== Opcode.more || kind === null) {
      throw new SocketBreach(1002, "a frame of no known kind");
    }
    size += length;
    if (size > mostBytes) throw new SocketBreach(1009, `a message of over ${mostBytes} bytes`);
    parts.push(await reader.exactly(length));
    if (!isLast) continue;
    yield { opcode: kind, payload: parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts) };
    parts = [];
    kind = null;
    size = 0;
  }
}

async function lengthOf(reader: ByteReader, short: number): Promise<number> {
  if (short < 126) return short;
  const bytes = Buffer.from(await reader.exactly(short === 126 ? 2 : 8));
  return short === 126 ? bytes.readUInt16BE(0) : Number(bytes.readBigUInt64BE(0));
}

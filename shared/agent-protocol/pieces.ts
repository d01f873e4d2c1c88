/**
 * Owns the piece, the unit of an execution's output: what was read at once from one of its pipes, with its number.
 *
 *   channel:u8  seq:u48be  length:u32be  bytes[length]
 *
 * An agent keeps pieces as they are sent, one after another.
 */

export const PIECE_HEADER_BYTES = 11;
export const MAX_PIECE_BYTES = 64 * 1024;

export interface Piece {
  channel: number;
  seq: number;
  bytes: Uint8Array;
}

export class PieceError extends Error {
  override name = "PieceError";
}

/** What stands before a piece's bytes. */
export function pieceHeader(channel: number, seq: number, bytes: number): Buffer {
  const header = Buffer.allocUnsafe(PIECE_HEADER_BYTES);
  header.writeUInt8(channel, 0);
  header.writeUIntBE(seq, 1, 6);
  header.writeUInt32BE(bytes, 7);
  return header;
}

/** The header at `offset`: the piece's number and how long it is with its header. */
export function readHeader(source: Buffer, offset: number): { seq: number; length: number } {
  return {
    seq: source.readUIntBE(offset + 1, 6),
    length: PIECE_HEADER_BYTES + source.readUInt32BE(offset + 7),
  };
}

/** Cuts a stream of bytes into pieces. Holds at most one that is unfinished, and takes only numbers that follow each other. */
export class PieceDecoder {
  #pending: Buffer = Buffer.alloc(0);
  #last: number | null;

  /** `after` is the number before the first piece; null takes any. */
  constructor(after: number | null) {
    this.#last = after;
  }

  /** Takes the next bytes, which stay as they are. Throws PieceError. */
  push(chunk: Uint8Array): Piece[] {
    const fresh = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const all = this.#pending.byteLength === 0 ? fresh : Buffer.concat([this.#pending, fresh]);
    const pieces: Piece[] = [];
    let offset = 0;
    while (all.byteLength - offset >= PIECE_HEADER_BYTES) {
      const { seq, length } = readHeader(all, offset);
      // One of no bytes would cost its reader something all the same, again and again.
      if (length === PIECE_HEADER_BYTES) throw new PieceError("a piece of no bytes");
      if (length > PIECE_HEADER_BYTES + MAX_PIECE_BYTES) throw new PieceError(`a piece of ${length} bytes`);
      if (all.byteLength - offset < length) break;
      const channel = all.readUInt8(offset);
      if (channel !== 1 && channel !== 2) throw new PieceError(`a piece of channel ${channel}`);
      if (this.#last !== null && seq !== this.#last + 1) throw new PieceError(`piece ${seq} after ${this.#last}`);
      this.#last = seq;
      pieces.push({ channel, seq, bytes: all.subarray(offset + PIECE_HEADER_BYTES, offset + length) });
      offset += length;
    }
    this.#pending = Buffer.from(all.subarray(offset));
    return pieces;
  }
}

/**
 * The piece, the unit of an execution's output: the bytes of one read from one of its pipes, with a sequence number.
 *
 *     channel:u8  seq:u48be  length:u32be  bytes[length]
 *
 * An agent stores pieces as they are sent, one after another.
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

/** The header of a piece. */
export function pieceHeader(channel: number, seq: number, bytes: number): Buffer {
  const header = Buffer.allocUnsafe(PIECE_HEADER_BYTES);
  header.writeUInt8(channel, 0);
  header.writeUIntBE(seq, 1, 6);
  header.writeUInt32BE(bytes, 7);
  return header;
}

/** Reads the header at `offset`: the piece's number and its length, header included. */
export function readHeader(source: Buffer, offset: number): { seq: number; length: number } {
  return {
    seq: source.readUIntBE(offset + 1, 6),
    length: PIECE_HEADER_BYTES + source.readUInt32BE(offset + 7),
  };
}

/** Parses a stream of bytes into pieces. Holds at most one incomplete piece, and accepts only consecutive numbers. */
export class PieceDecoder {
  readonly #header = Buffer.alloc(PIECE_HEADER_BYTES);
  #headerBytes = 0;
  /** The incomplete piece, with its full length. */
  #unfinished: (Piece & { have: number }) | null = null;
  #last: number | null;

  /** `after`: number of the piece before the first expected one; null: any. */
  constructor(after: number | null) {
    this.#last = after;
  }

  /** Processes the next bytes, without modifying them. Throws PieceError. */
  push(chunk: Uint8Array): Piece[] {
    const source = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const pieces: Piece[] = [];
    for (let at = 0; at < source.byteLength; ) {
      if (!this.#unfinished) {
        const isWhole = this.#headerBytes === 0 && source.byteLength - at >= PIECE_HEADER_BYTES;
        const header = isWhole ? source.subarray(at, at + PIECE_HEADER_BYTES) : this.#header;
        if (isWhole) at += PIECE_HEADER_BYTES;
        else {
          const taken = source.copy(header, this.#headerBytes, at);
          at += taken;
          this.#headerBytes += taken;
          if (this.#headerBytes < PIECE_HEADER_BYTES) break;
          this.#headerBytes = 0;
        }
        const current = this.#begin(header);
        if (source.byteLength - at >= current.length) {
          pieces.push({ ...current.piece, bytes: source.subarray(at, at + current.length) });
          at += current.length;
          continue;
        }
        this.#unfinished = { ...current.piece, bytes: Buffer.allocUnsafeSlow(current.length), have: 0 };
      }
      const { have, ...piece } = this.#unfinished;
      const taken = source.copy(piece.bytes, have, at);
      at += taken;
      this.#unfinished.have += taken;
      if (this.#unfinished.have < piece.bytes.byteLength) break;
      this.#unfinished = null;
      pieces.push(piece);
    }
    return pieces;
  }

  #begin(header: Buffer): { piece: Omit<Piece, "bytes">; length: number } {
    const channel = header.readUInt8(0);
    const { seq, length: whole } = readHeader(header, 0);
    const length = whole - PIECE_HEADER_BYTES;
    // An empty piece would still cost its reader something, repeatedly.
    if (length === 0) throw new PieceError("a piece of no bytes");
    if (length > MAX_PIECE_BYTES) throw new PieceError(`a piece of ${whole} bytes`);
    if (channel !== 1 && channel !== 2) throw new PieceError(`a piece of channel ${channel}`);
    if (this.#last !== null && seq !== this.#last + 1) throw new PieceError(`piece ${seq} after ${this.#last}`);
    this.#last = seq;
    return { piece: { channel, seq }, length };
  }
}

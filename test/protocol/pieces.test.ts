/** Pieces of output on the wire: complete in whatever parts they arrive, and invalid pieces are rejected. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import {
  MAX_PIECE_BYTES,
  type Piece,
  PieceDecoder,
  PieceError,
  pieceHeader,
} from "../../shared/agent-protocol/pieces.ts";

function encoded(pieces: readonly Piece[]): Buffer {
  return Buffer.concat(
    pieces.flatMap(({ channel, seq, bytes }) => [pieceHeader(channel, seq, bytes.byteLength), bytes]),
  );
}

const some = (count: number, from = 1): Piece[] =>
  Array.from({ length: count }, (_, index) => ({
    channel: 1 + (index % 2),
    seq: from + index,
    bytes: new Uint8Array(randomBytes(index === 3 ? MAX_PIECE_BYTES : 1 + index * 7)),
  }));

test("the layout is fixed", () => {
  const piece = { channel: 2, seq: 0x0102_0304_0506, bytes: Uint8Array.of(7, 8) };
  expect([...encoded([piece])]).toEqual([2, 1, 2, 3, 4, 5, 6, 0, 0, 0, 2, 7, 8]);
});

test.each([1, 5, 11, 12, 4096, 1_000_000])("arrive completely in parts of %i bytes", (part) => {
  const pieces = some(part < 5 ? 3 : 20);
  const stream = encoded(pieces);
  const decoder = new PieceDecoder(0);
  const found: Piece[] = [];
  for (let at = 0; at < stream.byteLength; at += part) found.push(...decoder.push(stream.subarray(at, at + part)));
  expect(found.map((piece) => ({ ...piece, bytes: [...piece.bytes] }))).toEqual(
    pieces.map((piece) => ({ ...piece, bytes: [...piece.bytes] })),
  );
});

test("a sequence number that is skipped, repeated, or not the next is a breach", () => {
  const bytes = new Uint8Array(1);
  const one = (seq: number) => encoded([{ channel: 1, seq, bytes }]);
  expect(() => new PieceDecoder(5).push(one(7))).toThrow(PieceError);
  expect(() => new PieceDecoder(5).push(one(5))).toThrow(PieceError);
  expect(new PieceDecoder(null).push(one(9))).toHaveLength(1);
  const decoder = new PieceDecoder(0);
  decoder.push(one(1));
  expect(() => decoder.push(one(1))).toThrow(PieceError);
});

test("an empty piece is a breach", () => {
  const empty = encoded([{ channel: 1, seq: 1, bytes: new Uint8Array(0) }]);
  expect(() => new PieceDecoder(0).push(empty)).toThrow(PieceError);
  const whole = encoded([{ channel: 1, seq: 1, bytes: new Uint8Array(3) }]);
  expect(() => new PieceDecoder(0).push(Buffer.concat([whole, empty]))).toThrow(PieceError);
});

test("unknown channels are a breach, and so are lengths above the limit before any byte is buffered", () => {
  expect(() => new PieceDecoder(0).push(encoded([{ channel: 3, seq: 1, bytes: new Uint8Array(1) }]))).toThrow(
    PieceError,
  );
  const header = encoded([{ channel: 1, seq: 1, bytes: new Uint8Array(0) }]);
  header.writeUInt32BE(MAX_PIECE_BYTES + 1, 7);
  expect(() => new PieceDecoder(0).push(header)).toThrow(PieceError);
  header.writeUInt32BE(0xffff_ffff, 7);
  expect(() => new PieceDecoder(0).push(header)).toThrow(PieceError);
});

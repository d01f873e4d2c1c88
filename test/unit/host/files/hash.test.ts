/**
 * SHA-256 of bytes that arrive in pieces: short input is hashed immediately, long input by a thread, and callers cannot tell the
 * difference.
 */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { Hash } from "../../../../daemon/host/files/hash.ts";

const BLOCK_BYTES = 256 * 1024;
const bytesOf = (length: number) => Buffer.from(Array.from({ length }, (_, index) => (index * 31) % 251));
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** In pieces of this number of bytes, from a buffer that is reused as soon as it may be. */
async function hashed(bytes: Uint8Array, piece: number): Promise<string> {
  using hash = new Hash();
  const room = Buffer.alloc(piece);
  for (let at = 0; at < bytes.byteLength; at += piece) {
    const part = room.subarray(0, Math.min(piece, bytes.byteLength - at));
    part.set(bytes.subarray(at, at + piece));
    await hash.add(part);
    room.fill(0xff);
  }
  return await hash.digest();
}

test.each([
  { length: 0, piece: 1 },
  { length: 1, piece: 1 },
  { length: BLOCK_BYTES, piece: 65_536 },
  { length: BLOCK_BYTES, piece: BLOCK_BYTES },
  { length: BLOCK_BYTES + 1, piece: 65_536 },
  { length: BLOCK_BYTES + 1, piece: BLOCK_BYTES + 1 },
  { length: 5 * BLOCK_BYTES, piece: BLOCK_BYTES },
  { length: 5 * BLOCK_BYTES + 77, piece: 100_003 },
  { length: 5 * BLOCK_BYTES + 77, piece: 6 * BLOCK_BYTES },
])("$length bytes in pieces of $piece", async ({ length, piece }) => {
  const bytes = bytesOf(length);
  expect(await hashed(bytes, piece)).toBe(sha256(bytes));
});

test("concurrent hashes, some of them aborted, give the same as alone", async () => {
  const lengths = [3 * BLOCK_BYTES, 3 * BLOCK_BYTES + 1, 1000, 4 * BLOCK_BYTES - 1];
  const givenUp = async () => {
    using hash = new Hash();
    await hash.add(bytesOf(2 * BLOCK_BYTES));
  };
  const digests = lengths.map((length) => hashed(bytesOf(length), 50_000));
  await Promise.all([givenUp(), givenUp()]);
  expect(await Promise.all(digests)).toEqual(lengths.map((length) => sha256(bytesOf(length))));
});

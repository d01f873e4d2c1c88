import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { piecesOf } from "../../../../daemon/domain/backups/pieces.ts";
import { HEADER_BYTES, opened, PIECE_BYTES, sealed } from "../../../../daemon/domain/backups/seal.ts";
import { signed } from "../../../../daemon/domain/backups/sign.ts";

const PASSPHRASE = "a passphrase of the tests";

async function* inChunks(bytes: Uint8Array, size = 10_000) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const all = async (source: AsyncIterable<Uint8Array>) => Buffer.concat(await Array.fromAsync(source));

test.each([0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])(
  "%i bytes are restored unchanged",
  async (size) => {
    const bytes = randomBytes(size);
    const kept = await all(sealed(inChunks(bytes), PASSPHRASE));
    expect(await all(opened(inChunks(kept, 777), PASSPHRASE))).toEqual(bytes);
  },
);

test("changed, truncated, reordered and foreign pieces are detected", async () => {
  const kept = await all(sealed(inChunks(randomBytes(3 * PIECE_BYTES)), PASSPHRASE));
  const flipped = (at: number) => kept.with(at, (kept[at] ?? 0) ^ 1);
  const sealedPiece = PIECE_BYTES + 16;
  const piece = (number: number) =>
    kept.subarray(HEADER_BYTES + number * sealedPiece, HEADER_BYTES + (number + 1) * sealedPiece);
  const begin = kept.subarray(0, HEADER_BYTES);
  const fails = async (bytes: Uint8Array, passphrase = PASSPHRASE) =>
    await all(opened(inChunks(bytes), passphrase)).then(
      () => "opened",
      (error: Error) => error.name,
    );
  expect(await fails(kept)).toBe("opened");
  expect(await fails(kept, "another one of the tests")).toBe("WrongPassphrase");
  for (const at of [20, 40]) expect(await fails(flipped(at))).toBe("WrongPassphrase");
  for (const at of [0, 15, HEADER_BYTES, HEADER_BYTES + sealedPiece, kept.length - 1])
    expect(await fails(flipped(at))).not.toBe("opened");
  for (const length of [0, 10, HEADER_BYTES, HEADER_BYTES + 5, HEADER_BYTES + sealedPiece, kept.length - 1])
    expect(await fails(kept.subarray(0, length))).toBe("BrokenBackup");
  expect(await fails(Buffer.concat([begin, piece(1), piece(0), piece(2)]))).toBe("BrokenBackup");
  expect(await fails(Buffer.concat([kept, piece(2)]))).toBe("BrokenBackup");
  expect(await fails(Buffer.concat([begin.with(15, 31), kept.subarray(HEADER_BYTES)]))).toBe("BrokenBackup");
});

test("pieces have their sizes, and the last is marked", async () => {
  const pieces = await Array.fromAsync(piecesOf(inChunks(Buffer.alloc(25), 4), (number) => (number === 0 ? 3 : 10)));
  expect(pieces.map(({ bytes, isLast }) => [bytes.length, isLast])).toEqual([
    [3, false],
    [10, false],
    [10, false],
    [2, true],
  ]);
});

test("requests are signed like the published example", () => {
  // "Authenticating Requests (AWS Signature Version 4)", example GET Object.
  const headers = signed(
    { key_id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region: "us-east-1" },
    {
      method: "GET",
      url: new URL("http://examplebucket.s3.amazonaws.com/test.txt"),
      headers: { Range: "bytes=0-9" },
      bodySha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    },
    new Date("2013-05-24T00:00:00Z"),
  );
  expect(headers.authorization).toContain("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
});

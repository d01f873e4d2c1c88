/**
 * Digest of large sparse files: SHA-256 over the blocks that are not all zero, each with its position. Holes cost nothing to read, and a
 * copy that fills them with zeros has the same digest.
 */
import { type FileHandle, open } from "node:fs/promises";
import { nextData } from "../files/libc.ts";

const BLOCK_BYTES = 256 * 1024;
const ZERO = Buffer.alloc(BLOCK_BYTES);

/** Hex digest of a file. */
export async function digestFile(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    hash.update(`${size}\n`);
    const block = Buffer.alloc(BLOCK_BYTES);
    for (let at = nextBlock(file, 0); at < size; at = nextBlock(file, at + BLOCK_BYTES)) {
      const { bytesRead } = await file.read(block, 0, BLOCK_BYTES, at);
      const bytes = block.subarray(0, bytesRead);
      if (bytes.equals(ZERO.subarray(0, bytesRead))) continue;
      hash.update(`${at}\n`);
      hash.update(bytes);
    }
    return hash.digest("hex");
  } finally {
    await file.close();
  }
}

/** Position of the block with the next data at or after `from`; the end or later if there is no data. */
function nextBlock(file: FileHandle, from: number): number {
  const data = nextData(file.fd, from);
  return Math.max(from, data - (data % BLOCK_BYTES));
}

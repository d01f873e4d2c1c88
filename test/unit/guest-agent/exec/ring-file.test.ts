/** A file used as a ring: the last bytes are there, across the seam, and no name is left. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RingFile } from "../../../../guest-agent/exec/ring-file.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-ring-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const numbered = (from: number, length: number) =>
  Buffer.from(Array.from({ length }, (_, index) => (from + index) % 251));

async function bytesOf(file: RingFile, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  await file.read(offset, bytes);
  return bytes;
}

test("holds the last bytes up to its size, for any position of the seam", async () => {
  const file = new RingFile(1000, directory);
  for (let offset = 0; offset < 10_000; offset += 300) {
    file.write(numbered(offset, 300), offset);
    const from = Math.max(0, offset - 700);
    expect(await bytesOf(file, from, offset + 300 - from)).toEqual(numbered(from, offset + 300 - from));
  }
  expect(readdirSync(directory)).toEqual([]);
  file.close();
});

test("is closed once its last reader has finished", async () => {
  const file = new RingFile(1000, directory);
  file.write(numbered(0, 500), 0);
  const reading = bytesOf(file, 0, 500);
  file.close();
  expect(await reading).toEqual(numbered(0, 500));
  await expect(file.read(0, Buffer.alloc(1))).rejects.toThrow("closed");
});

/** The head of a kernel: its set-up code whole, a little of the rest, and readable for another user. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeKernelHead } from "../../../../daemon/host/machine/kernel-head.ts";

/** A kernel of this number of bytes with a header that declares this number of sectors of set-up code. */
function kernelOf(bytes: number, sectors: number): Buffer {
  const kernel = Buffer.alloc(bytes, 7);
  kernel[0x1f1] = sectors;
  return kernel;
}

async function headOf(kernel: Buffer): Promise<{ head: Buffer; mode: number }> {
  await using directory = await mkdtempDisposable(join(tmpdir(), "roomd-kernel-"));
  const [whole, head] = [join(directory.path, "whole"), join(directory.path, "head")];
  writeFileSync(whole, kernel);
  const before = process.umask(0o077);
  try {
    await writeKernelHead(whole, head);
  } finally {
    process.umask(before);
  }
  await expect(writeKernelHead(whole, head)).rejects.toThrow("EEXIST");
  return { head: readFileSync(head), mode: statSync(head).mode & 0o777 };
}

test.each([
  ["as most have it", 39, 40 * 512 + 4096],
  ["without a declared size", 0, 5 * 512 + 4096],
  ["with the most", 255, 256 * 512 + 4096],
])("of a kernel %s", async (_what, sectors, length) => {
  const kernel = kernelOf(1024 * 1024, sectors);
  const { head, mode } = await headOf(kernel);
  expect(head).toEqual(kernel.subarray(0, length));
  expect(mode).toBe(0o644);
});

test("of a file that has no more", async () => {
  const kernel = kernelOf(3000, 39);
  expect((await headOf(kernel)).head).toEqual(kernel);
});

/**
 * The kernel file of a machine that loads a snapshot. QEMU keeps the file that it is given in its own memory, for a boot that never comes:
 * the running kernel is in the snapshot. QEMU itself reads only the head (Documentation/arch/x86/boot.rst of Linux).
 */
import { chmod, open, writeFile } from "node:fs/promises";

const SECTOR_BYTES = 512;
/** Offset of the number of set-up sectors after the first; 0 means 4. */
const SETUP_SECTORS_AT = 0x1f1;
const SETUP_SECTORS_UNSAID = 4;
/** Of the kernel itself: something. */
const BODY_BYTES = 4096;
const MAX_BYTES = 256 * SECTOR_BYTES + BODY_BYTES;

/** Writes the head of `kernel` to a new file that all users can read. */
export async function writeKernelHead(kernel: string, into: string): Promise<void> {
  await using file = await open(kernel);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0);
  const setup = (buffer[SETUP_SECTORS_AT] || SETUP_SECTORS_UNSAID) + 1;
  const bytes = Math.min(bytesRead, setup * SECTOR_BYTES + BODY_BYTES);
  await writeFile(into, buffer.subarray(0, bytes), { flag: "wx" });
  // Regardless of the daemon's umask: QEMU runs as another user.
  await chmod(into, 0o644);
}

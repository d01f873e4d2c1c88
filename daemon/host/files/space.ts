/** Owns how much of a disk is free, for what asks once before it writes much. */
import { statfsSync } from "node:fs";

/** In bytes. Throws what statfs throws. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

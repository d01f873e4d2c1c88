/** Free space of a disk, for callers that check once before a large write. */
import { statfsSync } from "node:fs";

/** In bytes. Throws the errors of statfs. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** Owns how the directory of a room goes, wherever it lies: the kernel's quota of its drive first, then all that is in it. */
import { rm } from "node:fs/promises";
import type { RoomDeps } from "./deps.ts";

/** One that is gone is nothing. */
export async function eraseDirectory({ paths, driveQuota }: RoomDeps, directory: string): Promise<void> {
  driveQuota.end(paths.drive_in(directory));
  await rm(directory, { recursive: true, force: true });
}

/** Owns that what was written to a file, or to a directory, is on disk. */
import { open } from "node:fs/promises";

export async function synced(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

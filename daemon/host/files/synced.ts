/** Flushes a file, or a directory, to disk. */
import { open } from "node:fs/promises";

export async function synced(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
